"""The conformance suite for backends whose machines take a second to start."""

from typing import Any

from habilis.core.limits import Limits
from habilis.sandbox.conformance import SandboxConformance
from habilis.sandbox.contract import Cell
from habilis.sandbox.session_sync import SyncSandbox


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
