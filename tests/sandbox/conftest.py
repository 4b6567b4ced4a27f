"""Fixtures of the sandbox tests."""

from collections.abc import AsyncIterator

import pytest

from habilis.core.limits import Limits
from habilis.sandbox.session import Sandbox


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """A sandbox with nothing in it."""
    async with await Sandbox.create(limits=Limits(seconds=5)) as made:
        yield made
