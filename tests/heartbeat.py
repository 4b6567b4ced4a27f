"""How long the event loop stood still while something was done."""

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar('T')


async def longest_pause(work: Awaitable[T]) -> tuple[T, float]:
    """The result of the work, and the longest time in seconds in which no other task could run."""
    longest, last = 0.0, time.perf_counter()

    async def beat() -> None:
        nonlocal longest, last
        while True:
            await asyncio.sleep(0.002)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    beating = asyncio.ensure_future(beat())
    await asyncio.sleep(0)
    try:
        result = await work
        await asyncio.sleep(0)
        return result, max(longest, time.perf_counter() - last)
    finally:
        beating.cancel()
