"""Fixtures of the tests of the `process` backend."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from habilis.sandbox import backends
from habilis.sandbox.process import levels
from habilis.sandbox.process.backend import ProcessBackend
from habilis.sandbox.session import Sandbox
from tests.requirements import require_namespaces


@pytest.fixture(autouse=True, scope='session')
def _the_component_is_there() -> None:  # pyright: ignore[reportUnusedFunction]
    """Nothing here runs `wasm`, so its component need not be built."""


@pytest.fixture
def no_namespaces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine that refuses namespaces."""

    def refused(program: str) -> str:
        return 'No permissions to create a new namespace'

    monkeypatch.setattr(levels, 'why_unusable', refused)
    backends.backend.cache_clear()
    yield
    backends.backend.cache_clear()


@pytest.fixture(autouse=True)
def _namespaces(request: pytest.FixtureRequest) -> None:  # pyright: ignore[reportUnusedFunction]
    """All tests here need namespaces, except those that switch them off or start no sandbox."""
    if 'no_namespaces' not in request.fixturenames and request.path.stem not in {'test_seccomp', 'test_seatbelt'}:
        require_namespaces()


@pytest.fixture
async def zygote(tmp_path: Path) -> AsyncIterator[ProcessBackend]:
    """A backend with a zygote for sandboxes with a workspace."""
    async with backend_with_zygote(workspace=tmp_path) as backend:
        yield backend


@asynccontextmanager
async def backend_with_zygote(workspace: Path | None = None) -> AsyncGenerator[ProcessBackend]:
    """A new backend, and its zygote for such sandboxes."""
    backends.backend.cache_clear()
    backend = backends.backend('process')
    assert isinstance(backend, ProcessBackend)
    for _ in range(2):
        async with await Sandbox.create('process', workspace=workspace):
            pass
    wait_for_zygote(backend)
    yield backend
    backend._zygotes.interrupt()  # pyright: ignore[reportPrivateUsage]
    backends.backend.cache_clear()


def wait_for_zygote(backend: ProcessBackend) -> None:
    end = time.monotonic() + 60
    while not backend._zygotes._zygotes:  # pyright: ignore[reportPrivateUsage]
        assert time.monotonic() < end
        time.sleep(0.05)
