"""The steps of a flow, told as they end: whoever waits for it sees that it goes on."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from habilis.agent.hooks.harmless import one_line
from habilis.cli.task.showing import say
from habilis.core.errors import JournalError
from habilis.journal import Record
from habilis.journal.stores import open_store

OFTEN = 0.3
"""Seconds between two looks."""


@contextlib.asynccontextmanager
async def steps_told(where: str | None, run: str) -> AsyncGenerator[None]:
    """While this is open, each step of the run that ends is told, but not what happens inside it."""
    store = open_store(where)
    seen = 0

    async def look(*, tell: bool = True) -> None:
        nonlocal seen
        with contextlib.suppress(JournalError):  # whoever works on the run will say why
            for record in await store.load(run, after=seen):
                seen = record.seq
                if tell and (line := _line(record)):
                    say(line)

    async def watch() -> None:
        while True:
            await asyncio.sleep(OFTEN)
            await look()

    await look(tell=False)
    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        await look()
        await store.close()


def _line(record: Record) -> str:
    _, slash, step = record.path.partition('/')
    if not slash or '/' in step or record.kind not in {'done', 'failed'}:
        return ''
    return f'{one_line(step, 200)} {"is done" if record.kind == "done" else "has failed"}'
