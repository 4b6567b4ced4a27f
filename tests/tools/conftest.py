"""Fixtures of the tool tests."""

import pytest

from habilis.sandbox.wasm.cache import compiled_component


@pytest.fixture(scope='session')
def component() -> None:
    """The sandbox, made before the first test that runs one, so that no test's time limit pays for it."""
    compiled_component()
