"""A process that appends to a run until it is killed, or somebody takes the run.

`python -m tests.journal.appender URL` says after each append the number of the last record; `lost` in the end.
"""

import asyncio
import os
import sys

from habilis.core.errors import LeaseLost, RunBusy
from habilis.journal.contract import RunInfo
from habilis.journal.stores.urls import open_store
from tests.journal.writer import RUN, following


def _say(text: object) -> None:
    os.write(1, f'{text}\n'.encode())


async def _append_for_ever(url: str) -> None:
    store = open_store(url)
    await store.create(RunInfo(run=RUN))
    held = await store.lease(RUN)
    try:
        lease = await store.claim(RUN, owner=f'appender {os.getpid()}', seconds=60, over=held.epoch)
        last = len(await store.load(RUN))
        while True:
            append = following(last)
            await store.append(RUN, append.records, epoch=lease.epoch, info=append.info, blobs=append.blobs)
            last += len(append.records)
            _say(last)
    except (LeaseLost, RunBusy):
        _say('lost')
    await store.close()


if __name__ == '__main__':
    asyncio.run(_append_for_ever(sys.argv[1]))
