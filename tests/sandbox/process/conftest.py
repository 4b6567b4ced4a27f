"""Fixtures of the tests of the `process` backend."""

import pytest


@pytest.fixture(autouse=True, scope='session')
def _the_component_is_there() -> None:  # pyright: ignore[reportUnusedFunction]
    """Nothing here runs `wasm`, so its component need not be built."""
