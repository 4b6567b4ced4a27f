"""What the kernel uses of policies. Their checks need Python 3.10; an older one runs cells without a policy."""

import sys
import types
from collections.abc import Callable

if sys.version_info >= (3, 10):  # noqa: UP036 - the Python of an image may be older
    from habilis.sandbox.guest.import_gate import ImportGate, refuse_forged_code
    from habilis.sandbox.guest.policy import Policy, PolicyError, check

    def install(policy_getter: Callable[[], Policy | None], is_library_file: Callable[[str], bool]) -> None:
        """Install what holds a policy's list of imports at run time."""

        def is_user(frame: types.FrameType) -> bool:
            return not is_library_file(frame.f_code.co_filename)

        ImportGate().install(policy_getter, is_user)
        refuse_forged_code(policy_getter, is_user, is_library_file)

else:

    class PolicyError(Exception):
        """A cell has a policy."""

    class Policy:
        """A policy that cannot be checked."""

        @classmethod
        def from_json(cls, data):
            return cls()

    def check(tree, policy):
        """Refuse the cell."""
        raise PolicyError('a policy needs Python 3.10 or later in the sandbox')

    def install(policy_getter, is_library_file):
        """There is nothing to install."""


__all__ = ['Policy', 'PolicyError', 'check', 'install']
