"""A run that each version has written once: `python -m tests.journal.versions.story FOLDER` writes it again.

What lies in the folder of a version that was released is never written again. When the format changes, give the new
version a folder of its own, beside the old ones.
"""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from habilis.core.codec import Json
from habilis.journal.contract import Kind, Record, RunInfo, Store
from habilis.journal.copies import export_run
from habilis.journal.encoding import digest_of
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.sqlite import SqliteStore

INFO = RunInfo(
    run='run-1',
    status='stopped',
    kind='flow',
    name='shop:order',
    title='Order 7 «lamps»\nand a bulb \U0001f4a1',
    user='ada',
    session='s-1',
    parent='run-0',
    error='max_steps',
    created=1700000000.25,
    updated=1700000009.5,
)
BLOBS = {digest_of(data): data for data in (b'"a long value"', bytes(range(128)))}
_LONG, _SNAPSHOT = BLOBS
_STEPS: tuple[tuple[Kind, Json], ...] = (
    ('opened', {'input': [1, -2.5, None, True]}),
    ('done', 'naïve 日本語 \udcff \x00'),
    ('failed', {'type': 'ValueError', 'message': 'no'}),
    ('started', None),
    ('asked', {'question': 'May I?', 'options': ['yes', 'no']}),
    ('answered', True),
    ('voided', ['step#2/']),
    ('noted', 'waiting'),
    ('ended', {'status': 'stopped', 'value': {'$': 'tuple', 'v': [1, 2]}, 'failed': ['step#3']}),
)
RECORDS = [
    *(
        Record(seq=seq, path=f'order#1/step#{seq}', kind=kind, key=f'{seq:016x}', value=value, at=1700000000 + seq / 8)
        for seq, (kind, value) in enumerate(_STEPS, 1)
    ),
    Record(seq=10, path='order#1/~1/cell#1', kind='done', blob=_LONG, attached={'sandbox': _SNAPSHOT}, at=1700000005.5),
    Record(seq=11, path='', kind='noted'),
]
EPOCH = 2


async def check(store: Store, *, epoch: int = EPOCH) -> None:
    """A store of today finds all of it, and goes on."""
    assert await store.load('run-1') == RECORDS
    assert await store.runs(user='ada', session='s-1', status='stopped') == [INFO] == await store.runs()
    for digest, data in BLOBS.items():
        assert await store.blob('run-1', digest) == data
    held = await store.lease('run-1')
    assert (held.epoch, held.until) == (epoch, 0)
    lease = await store.claim('run-1', owner='third', seconds=60)
    assert lease.epoch == epoch + 1
    await store.append('run-1', [*RECORDS[-2:], replace(RECORDS[0], seq=12)], epoch=lease.epoch)
    assert len(await store.load('run-1')) == 12
    await store.close()


async def write(store: Store) -> None:
    """The run, by its second owner."""
    await store.create(RunInfo(run='run-1', user='ada', created=INFO.created))
    first = await store.claim('run-1', owner='first', seconds=60)
    await store.append('run-1', RECORDS[:4], epoch=first.epoch)
    second = await store.claim('run-1', owner='second', seconds=60, over=first.epoch)
    await store.append('run-1', RECORDS[4:5], epoch=second.epoch)
    await store.append('run-1', RECORDS[5:], epoch=second.epoch, info=INFO, blobs=BLOBS)
    await store.release('run-1', epoch=second.epoch)
    await store.close()


async def main(folder: Path) -> None:
    """In each store that is a file, and as an exported run."""
    for store in (SqliteStore(folder / 'journal.db'), FileStore(folder / 'files')):
        await write(store)
    (folder / 'run-1.txt').write_text(await export_run(FileStore(folder / 'files'), 'run-1'), encoding='ascii')


if __name__ == '__main__':
    asyncio.run(main(Path(sys.argv[1])))
