"""Fixtures of the tests of the service."""

import pytest

from habilis.sandbox.wasm.cache import compiled_component


@pytest.fixture(autouse=True, scope='session')
def _the_component_is_there() -> None:  # pyright: ignore[reportUnusedFunction]
    """Made before the first test, so that no time limit pays for it."""
    compiled_component()
