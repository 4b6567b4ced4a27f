"""Follow a flow: its steps as they finish."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

from habilis.agent.hooks.sanitize import one_line
from habilis.core.errors import JournalError
from habilis.flows.stores import store_handle
from habilis.journal import Record

POLL_SECONDS = 0.3


@contextlib.asynccontextmanager
async def steps_said(
    journal: str | None, run: str, say: Callable[[str], None], *, resumed: bool = False
) -> AsyncGenerator[None]:
    """Inside this context, say each top-level step of the run when it finishes; of a resumed run, only new ones."""
    handle = await store_handle(journal)
    store = handle.store
    last = 0

    async def poll(*, silent: bool = False) -> None:
        nonlocal last
        with contextlib.suppress(JournalError):  # the resumed flow will raise it
            for record in await store.load(run, after=last):
                last = record.seq
                if not silent and (line := _line(record)):
                    say(line)

    async def watch() -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            await poll()

    if resumed:
        await poll(silent=True)
    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        await poll()
        await handle.close()


def _line(record: Record) -> str:
    _, slash, step = record.path.partition('/')
    if not slash or '/' in step or record.kind not in {'done', 'failed'}:
        return ''
    return f'{one_line(step, 200)} {record.kind}'
