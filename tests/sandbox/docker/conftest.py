"""Fixtures of the tests of the `docker` backend."""

from collections.abc import Iterator

import pytest

from tests.sandbox.docker import engine


@pytest.fixture(autouse=True, scope='module')
def _docker_is_there() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with engine.registered():
        yield
