"""Writers that are killed: what they were told is written is there, whole, and nothing else."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.core.errors import LeaseLost, RunNotFound
from habilis.journal.contract import RunInfo, Store
from tests.journal.writer import RUN, add, check, following, make_store

KINDS = ('sqlite', 'files')
KILLS = 20


class Writers:
    """Starts writers, one after the other."""

    def __init__(self, kind: str, path: Path) -> None:
        self.kind, self.path = kind, path
        command = [sys.executable, str(Path(__file__).with_name('writer.py')), kind, str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.pid = 0

    def store(self) -> Store:
        """The same data, seen from here."""
        return make_store(self.kind, str(self.path))

    def start(self, what: str, at: int = 0) -> None:
        """Let one begin."""
        assert self.process.stdin is not None
        self.process.stdin.write(f'{what} {at}\n')
        self.process.stdin.flush()
        self.pid = int(self.line().removeprefix('pid '))

    def line(self) -> str:
        """What it says next."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def rest(self) -> list[str]:
        """All it still says until it is dead."""
        lines = [self.line()]
        while lines[-1] not in {'died', ''}:
            lines.append(self.line())
        assert lines.pop() == 'died'
        return lines


@pytest.fixture(params=KINDS)
def writers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Writers]:
    """For each kind of store."""
    made = Writers(request.param, tmp_path / 'journal')
    with made.process:
        yield made
        made.process.kill()


def checked(writers: Writers, acknowledged: int) -> int:
    """`check`, by one who has never seen this store before."""

    async def look() -> int:
        store = writers.store()
        last = await check(store, acknowledged)
        await store.close()
        return last

    return asyncio.run(look())


def test_a_writer_may_be_killed_at_any_moment(writers: Writers) -> None:
    last, chance = 0, random.Random()
    for _ in range(KILLS):
        writers.start('write')
        acknowledged = [int(writers.line()) for _ in range(chance.randrange(1, 12))]
        time.sleep(chance.random() / 200)
        os.kill(writers.pid, signal.SIGKILL)
        acknowledged += [int(line) for line in writers.rest()]
        assert acknowledged[0] > last
        last = checked(writers, acknowledged[-1])
    assert last > KILLS


@pytest.mark.parametrize('what', ['single', 'batch', 'claim'])
def test_a_writer_may_die_between_any_two_changes_to_the_files(tmp_path: Path, what: str) -> None:
    writers = Writers('files', tmp_path / 'journal')
    with writers.process:
        last, deaths = 0, 0
        while True:
            writers.start(what, deaths + 1)
            said = writers.rest()
            numbers = [int(line) for line in said if line.isdigit()]
            last = checked(writers, numbers[-1] if numbers else last)
            if 'finished' in said:
                break
            deaths += 1
        writers.process.kill()
    assert deaths >= {'single': 1, 'batch': 8, 'claim': 2}[what]


def test_a_run_is_created_and_deleted_atomically_at_any_crash(tmp_path: Path) -> None:
    async def there() -> bool:
        store = make_store('files', str(tmp_path / 'journal'))
        try:
            assert await store.info('run-2') == RunInfo(run='run-2', title='whole')
        except RunNotFound:
            assert [info.run for info in await store.runs()] == [RUN]
            return False
        assert {info.run for info in await store.runs()} == {RUN, 'run-2'}
        assert await store.load('run-2') == []
        return True

    writers = Writers('files', tmp_path / 'journal')
    with writers.process:
        seen = {'create': [False], 'delete': [True]}
        for what, states in seen.items():
            for at in range(1, 50):
                writers.start(what, at)
                finished = 'finished' in writers.rest()
                states.append(asyncio.run(there()))
                if finished or states[-1] != states[0]:
                    break
        writers.process.kill()
    assert len(seen['create']) > 5
    assert seen['create'] == [False] * (len(seen['create']) - 1) + [True]
    assert seen['delete'] == [True] * (len(seen['delete']) - 1) + [False]


async def test_what_others_died_over_is_removed_in_time_and_nothing_else(tmp_path: Path) -> None:
    store = make_store('files', str(tmp_path))
    names = [f'.{name}-{n:016x}' for n, name in enumerate(('old', 'new', 'new'))]
    others = ['.my-settings', '.new-idea', '.old-1', 'notes-old']
    for name, age in zip((*names, *others), (0, 0, 90000, 90000, 90000, 90000, 90000), strict=True):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'info.json').touch()
        now = (tmp_path / name).stat().st_mtime
        os.utime(tmp_path / name, (now - age, now - age))
    await store.create(RunInfo(run=RUN))
    await store.delete(RUN)
    assert {path.name for path in tmp_path.iterdir()} == {names[1], *others}


async def test_a_writer_that_lost_its_run_to_another_process_writes_nothing_more(writers: Writers) -> None:
    writers.start('write')
    numbers = [int(writers.line()) for _ in range(5)]
    store = writers.store()
    held = await store.lease(RUN)
    mine = await store.claim(RUN, owner='me', seconds=60, over=held.epoch)
    there = await store.load(RUN)
    said = await asyncio.to_thread(writers.rest)
    assert said.pop() == 'lost'
    numbers += map(int, said)
    assert numbers[-1] <= len(there)
    assert await store.load(RUN) == there
    record = following(len(there)).records
    with pytest.raises(LeaseLost):
        await store.append(RUN, record, epoch=held.epoch)
    assert await check(store, await add(store, mine.epoch, len(there))) == len(there) + len(record)
    await store.close()
