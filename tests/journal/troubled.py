"""A process whose disk is full, or may not be written. It says what came of it as JSON, the last line of its output.

`python -m tests.journal.troubled limit|disk|read KIND FOLDER`
"""

import asyncio
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from habilis.core.errors import JournalError, StoreUnavailable
from habilis.journal.contract import RunInfo, Store
from tests.journal.writer import RUN, add, begin, check, make_store

LIMIT = 300_000
MORE = 20


def no_room(how: str, folder: Path) -> Callable[[], None]:
    """Take the room away. Gives what brings it back."""
    if how == 'limit':  # no file may grow beyond this
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, hard))
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    ballast = folder / 'ballast'
    with ballast.open('wb') as file:
        file.truncate()
        while os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize > LIMIT:
            file.write(bytes(4096))
            file.flush()
    return ballast.unlink


async def full(how: str, store: Store, folder: Path) -> dict[str, object]:
    """Write until there is no room, and on when there is again."""
    epoch, last = await begin(store)
    make_room = no_room(how, folder)
    refusals: list[StoreUnavailable] = []
    while len(refusals) < 3:
        try:
            last = await add(store, epoch, last)
        except StoreUnavailable as error:
            refusals.append(error)
            assert await check(store, last) == last
    before = last
    make_room()
    for _ in range(MORE):
        last = await add(store, epoch, last)
    assert await check(store, last) == last
    await store.close()
    return {
        'refusals': [str(refusal) for refusal in refusals],
        'passing': [refusal.passing for refusal in refusals],
        'before': before,
        'after': last,
    }


async def _all(store: Store) -> None:
    """Everything that was written is read."""
    assert await store.load(RUN)
    assert (await store.lease(RUN)).epoch == 1
    assert (await store.info(RUN)).run == RUN


async def read(store: Store) -> dict[str, str]:
    """What each operation says where nothing may be written."""
    lease = 1
    said: dict[str, str] = {}
    for name, work in {
        'load': _all(store),
        'runs': store.runs(),
        'append': add(store, lease, 1),
        'claim': store.claim(RUN, owner='you', seconds=60, over=lease),
        'create': store.create(RunInfo(run='run-2')),
        'delete': store.delete(RUN),
    }.items():
        try:
            await work
            said[name] = ''
        except JournalError as error:
            said[name] = f'{type(error).__name__}: {error}'
    await store.close()
    return said


def main(how: str, kind: str, folder: str) -> None:
    """Print what came of it."""
    store = make_store(kind, f'{folder}/journal')
    print(json.dumps(asyncio.run(read(store) if how == 'read' else full(how, store, Path(folder)))))


if __name__ == '__main__':
    main(*sys.argv[1:])
