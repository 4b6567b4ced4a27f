"""The conformance suite for backends whose machines take a second to start."""

from collections.abc import Callable
from typing import Any

from habilis.core.limits import Limits
from habilis.sandbox.conformance.suite import SandboxConformance
from habilis.sandbox.contract import Cell
from habilis.sandbox.session import SyncSandbox


class SharedSandboxConformance(SandboxConformance):
    """Cells without settings share one sandbox."""

    shared: SyncSandbox | None = None

    def run(self, code: str, **settings: Any) -> Cell:
        """Run a cell."""
        if settings:
            return super().run(code, **settings)
        cls = type(self)
        cls.shared = cls.shared or SyncSandbox.create(self.backend, limits=Limits(seconds=10))
        return cls.shared.run(code)

    @classmethod
    def teardown_class(cls) -> None:
        """Close the shared sandbox."""
        if cls.shared is not None:
            cls.shared.close()


def assert_a_lost_machine_is_replaced(backend: str, lose_machines: Callable[[], None]) -> None:
    """Lose the machine of a sandbox in a cell: the cell fails, and the next one has the variables from before."""

    def lose_all() -> None:
        lose_machines()

    with SyncSandbox.create(backend, tools=[lose_all]) as sandbox:
        sandbox.run('x = 1')
        cell = sandbox.run('import time\nlose_all()\ntime.sleep(30)\nx = 2')  # the loss may reach it a moment later
        assert cell.error is not None
        assert (cell.error.kind, 'was lost' in cell.error.message) == ('broken', True)
        assert sandbox.run('x').value == 1
