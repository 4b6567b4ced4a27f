"""Fixtures of the tests of the `docker` backend."""

from collections.abc import Iterator

import pytest

from tests.sandbox.docker import engine


@pytest.fixture(autouse=True, scope='session')
def _the_component_is_there() -> None:  # pyright: ignore[reportUnusedFunction]
    """Nothing here runs `wasm`, so its component need not be built."""


@pytest.fixture(autouse=True, scope='module')
def _docker_is_there() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with engine.registered():
        yield
