"""Fixtures of the sandbox tests."""

from collections.abc import AsyncIterator

import pytest

from habilis.core.limits import Limits
from habilis.sandbox.session import Sandbox
from habilis.sandbox.wasm.cache import compiled_component


@pytest.fixture(autouse=True, scope='session')
def _the_component_is_there() -> None:  # pyright: ignore[reportUnusedFunction]
    """Made before the first test, so that no test's time limit pays for it."""
    compiled_component()


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """A sandbox with nothing in it."""
    async with await Sandbox.create(limits=Limits(seconds=5)) as made:
        yield made
