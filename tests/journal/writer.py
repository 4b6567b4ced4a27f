"""A process that writes to a store until it dies: `python writer.py sqlite|files PATH`.

Each line on its input starts a writer and says what it does; `pid N` and what the writer has finished come out, and
`died` when it is gone. What is written follows from the number of the last record, so that a reader knows it as well.
"""

import asyncio
import contextlib
import itertools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from habilis.core.errors import LeaseLost
from habilis.journal.contract import Record, RunInfo, Store
from habilis.journal.encoding import digest_of
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.sqlite import SqliteStore

RUN = 'run-1'
CHANGING = ('write', 'replace', 'rename', 'unlink', 'ftruncate', 'mkdir', 'rmdir')
"""The functions of `os` that change something on disk."""


@dataclass(frozen=True, kw_only=True)
class Append:
    """What is written at once."""

    records: list[Record]
    info: RunInfo | None = None
    blobs: dict[str, bytes]


def following(last: int) -> Append:
    """What is written after record number `last`: one record, some of them long, or three with a blob and an info."""
    if last % 7 != 5:
        text = 'x' * (100_000 if last % 5 == 0 else 10)
        return Append(records=[Record(seq=last + 1, path=f'step#{last + 1}', kind='done', value=text)], blobs={})
    blob = b'%d' % last * 2000
    base = Record(seq=0, path='batch#1', kind='done', blob=digest_of(blob))
    records = [replace(base, seq=last + n, at=float(n)) for n in (1, 2, 3)]
    return Append(records=records, info=RunInfo(run=RUN, title=str(last + 3)), blobs={digest_of(blob): blob})


async def check(store: Store, acknowledged: int) -> int:
    """What was acknowledged is there, at most one append more, and each of them as a whole. Gives the last number."""
    records, info = await store.load(RUN), await store.info(RUN)
    expected: list[Record] = []
    title = ''
    while len(expected) < len(records):
        append = following(len(expected))
        expected += append.records
        title = append.info.title if append.info else title
        for digest, data in append.blobs.items():
            assert await store.blob(RUN, digest) == data
    assert records == expected
    assert info == RunInfo(run=RUN, title=title)
    assert acknowledged <= len(records) <= acknowledged + len(following(acknowledged).records)
    return len(records)


def make_store(kind: str, path: str) -> Store:
    """A store of one of the kinds that live on disk."""
    return SqliteStore(path) if kind == 'sqlite' else FileStore(path)


def _say(text: object) -> None:
    os.write(1, f'{text}\n'.encode())


async def begin(store: Store) -> tuple[int, int]:
    """Be the writer. Gives the epoch, and the number of the last record."""
    await store.create(RunInfo(run=RUN))
    held = await store.lease(RUN)
    lease = await store.claim(RUN, owner=f'writer {os.getpid()}', seconds=60, over=held.epoch)
    return lease.epoch, len(await store.load(RUN))


async def add(store: Store, epoch: int, last: int) -> int:
    """Write what follows. Gives the number of the last record."""
    append = following(last)
    await store.append(RUN, append.records, epoch=epoch, info=append.info, blobs=append.blobs)
    return last + len(append.records)


async def _add(store: Store, epoch: int, last: int) -> int:
    last = await add(store, epoch, last)
    _say(last)
    return last


async def _write(store: Store) -> None:
    """Until somebody kills us, or takes the run."""
    epoch, last = await begin(store)
    with contextlib.suppress(LeaseLost):
        while True:
            last = await _add(store, epoch, last)
    _say('lost')


async def _die(store: Store, what: str, at: int) -> None:
    """Do one thing, and die before the change to the disk of number `at`; of a write, half is done."""
    epoch, last = await begin(store)
    size = 3 if what == 'batch' else 1
    while len(following(last).records) != size:
        last = await _add(store, epoch, last)
    _arm(at)
    if what == 'create':
        await store.create(RunInfo(run='run-2', title='whole'))
    elif what == 'delete':
        await store.delete('run-2')
    elif what == 'claim':
        await store.claim(RUN, owner='another', seconds=60, over=epoch)
    else:
        await _add(store, epoch, last)
    _say('finished')


def _arm(at: int) -> None:
    count = itertools.count(1)

    def deadly(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if (name != 'write' or args[0] > 2) and next(count) == at:
                if name == 'write':
                    function(args[0], args[1][: len(args[1]) // 2])
                os._exit(9)
            return function(*args, **options)

        return call

    for name in CHANGING:
        setattr(os, name, deadly(name, getattr(os, name)))


def main(kind: str, path: str) -> None:
    """A writer for each line."""
    for line in sys.stdin:
        what, at = line.split()
        pid = os.fork()
        if pid == 0:
            store = make_store(kind, path)
            asyncio.run(_write(store) if what == 'write' else _die(store, what, int(at)))
            os._exit(0)
        _say(f'pid {pid}')
        os.waitpid(pid, 0)
        _say('died')


if __name__ == '__main__':
    main(*sys.argv[1:])
