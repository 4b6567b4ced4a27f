"""The shipped suite against a real engine."""

from typing import Any

from habilis.core.limits import Limits
from habilis.sandbox.conformance.suite import IsolationConformance, SandboxConformance
from habilis.sandbox.contract import Cell
from habilis.sandbox.session import Sandbox
from tests.sandbox.docker.engine import BACKEND


class TestDocker(SandboxConformance):
    backend = BACKEND

    def run(self, code: str, **settings: Any) -> Cell:
        """Cells without settings share one sandbox: a container takes half a second."""
        if settings:
            return super().run(code, **settings)
        shared = getattr(TestDocker, 'shared', None) or Sandbox.create_sync(BACKEND, limits=Limits(seconds=10))
        TestDocker.shared = shared  # type: ignore[attr-defined]
        return shared.run(code)

    @classmethod
    def teardown_class(cls) -> None:
        if shared := getattr(cls, 'shared', None):
            shared.close()


class TestDockerIsolation(IsolationConformance):
    backend = BACKEND
    has_processes = has_system = True
