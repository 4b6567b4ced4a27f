"""Waiting for what will be so in a moment: how long that takes is up to the machine."""

import asyncio
import time
from collections.abc import Callable

PATIENCE = 300.0


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread, task or process does."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, 'it never came to that'
        await asyncio.sleep(0.005)
