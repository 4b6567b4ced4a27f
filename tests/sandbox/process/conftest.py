"""Fixtures of the tests of the `process` backend."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from habilis.sandbox import backends
from habilis.sandbox.process.backend import ProcessBackend
from habilis.sandbox.session import Sandbox


@pytest.fixture(autouse=True, scope='session')
def _the_component_is_there() -> None:  # pyright: ignore[reportUnusedFunction]
    """Nothing here runs `wasm`, so its component need not be built."""


@pytest.fixture
async def zygote(tmp_path: Path) -> AsyncIterator[ProcessBackend]:
    """A backend with a zygote for sandboxes with a workspace."""
    backends.backend.cache_clear()
    backend = backends.backend('process')
    assert isinstance(backend, ProcessBackend)
    for _ in range(2):
        async with await Sandbox.create('process', workspace=tmp_path):
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
