"""What the kernel uses of code rules. Their checks need Python 3.10; an older one runs cells without rules only."""

import sys
import types
from collections.abc import Callable

if sys.version_info >= (3, 10):  # noqa: UP036 - the Python of an image may be older
    from habilis.sandbox.guest.code_rules import CodeRules, CodeRulesError, check
    from habilis.sandbox.guest.import_gate import ImportGate, refuse_forged_code

    def install(rules_getter: Callable[[], CodeRules | None], is_library_file: Callable[[str], bool]) -> None:
        """Install what holds the list of imports at run time."""

        def is_user(frame: types.FrameType) -> bool:
            return not is_library_file(frame.f_code.co_filename)

        ImportGate().install(rules_getter, is_user)
        refuse_forged_code(rules_getter, is_user, is_library_file)

else:

    class CodeRulesError(Exception):
        """A cell has code rules."""

    class CodeRules:
        """Rules that cannot be checked."""

        @classmethod
        def from_json(cls, data):
            return cls()

    def check(tree, rules):
        """Refuse the cell."""
        raise CodeRulesError('code rules need Python 3.10 or later in the sandbox')

    def install(rules_getter, is_library_file):
        """There is nothing to install."""


__all__ = ['CodeRules', 'CodeRulesError', 'check', 'install']
