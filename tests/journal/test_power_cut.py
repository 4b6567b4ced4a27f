"""What is on the disk when the effect of a step begins that must not be repeated, and what a power cut leaves of it."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from habilis.core import owners
from habilis.journal import Journal, Paused, RunInfo, Scope
from habilis.journal.contract import Durability
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.postgres import PostgresStore
from habilis.journal.stores.sqlite_file import SqliteFile
from tests.journal.dying import dead_owner
from tests.journal.servers import PostgresServer
from tests.requirements import missing

# Plain files: only what was flushed is left ---------------------------------------------------------------------------


class Disk:
    """Knows what was flushed of each file and folder: all that a power cut may leave."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.files: dict[int, bytes] = {}
        """By inode."""

        self.names: dict[Path, dict[str, int]] = {}
        self._fsync = os.fsync

    def fsync(self, file: int) -> None:
        """Flush a file or folder."""
        self._fsync(file)
        path = Path(f'/proc/self/fd/{file}').readlink()
        if path.is_dir():
            self.names[path] = {each.name: each.stat().st_ino for each in path.iterdir()}
        else:
            self.files[path.stat().st_ino] = path.read_bytes()

    def leave(self, place: Path) -> None:
        """Copy what is left after a power cut."""
        self._copy(self._root, place)

    def _copy(self, folder: Path, place: Path) -> None:
        place.mkdir()
        for name, inode in self.names.get(folder, {}).items():
            if inode in self.files:
                (place / name).write_bytes(self.files[inode])
            elif (folder / name) in self.names:
                self._copy(folder / name, place / name)
            elif not (folder / name).is_dir():
                (place / name).write_bytes(b'')  # its name was flushed, its content was not


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk(tmp_path / 'journal')
    monkeypatch.setattr(os, 'fsync', made.fsync)
    return made


@pytest.mark.skipif(sys.platform != 'linux', reason='reads /proc')
@pytest.mark.parametrize('durability', ['normal', 'full'])
async def test_a_power_cut_in_a_step_that_must_not_be_repeated_leaves_its_mark(
    tmp_path: Path, disk: Disk, durability: Durability
) -> None:
    store = FileStore(tmp_path / 'journal', durability=durability)
    journal = await Journal.create(store, RunInfo(run='run-1'), {'inputs': 1})
    done: list[str] = []

    async def pay() -> None:
        done.append('paid')
        disk.leave(tmp_path / f'left-{len(done)}')

    async def look() -> int:
        return 1

    scope = Scope(journal, '')
    for _ in range(2):
        await scope.step('look', look)
        await scope.step('pay', pay, once=True)
    await journal.close()
    for number in (1, 2):
        left = FileStore(tmp_path / f'left-{number}')
        kinds = [record.kind for record in await left.load('run-1')]
        assert kinds == ['opened', *['done', 'started', 'done'] * number][: 3 * number]
        assert (await left.info('run-1')).run == 'run-1'


@pytest.mark.skipif(sys.platform != 'linux', reason='reads /proc')
async def test_after_a_power_cut_in_such_a_step_a_person_is_asked(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, 'new_owner', dead_owner)
    store = FileStore(tmp_path / 'journal')
    journal = await Journal.create(store, RunInfo(run='run-1'), {'inputs': 1})

    async def pay() -> None:
        disk.leave(tmp_path / 'left')

    await Scope(journal, '').step('pay', pay, once=True)
    await journal.close()
    again = await Journal.open(FileStore(tmp_path / 'left'), 'run-1')
    with pytest.raises(Paused):
        await Scope(again, '').step('pay', pay, once=True)
    await again.close()


# SQLite and plain files: system calls ---------------------------------------------------------------------------------

_PROGRAM = """
import asyncio, sys
from habilis.journal import Journal, RunInfo, Scope
from habilis.journal.stores.urls import open_store

async def effect():
    open(sys.argv[2], 'x').close()

async def main():
    journal = await Journal.create(open_store(sys.argv[1]), RunInfo(run='run-1'), {'inputs': 1})
    await Scope(journal, '').step('pay', effect, once=True)
    await journal.close()

asyncio.run(main())
"""


def _calls(command: list[str], trace: Path) -> list[str]:
    """The system calls of a process that write, flush or open files, with the paths of the files."""
    traced = 'write,pwrite64,writev,fsync,fdatasync,openat,open'
    try:
        subprocess.run(['strace', '-f', '-y', '-o', str(trace), '-e', f'trace={traced}', *command], check=True)
    except (OSError, subprocess.CalledProcessError):
        missing('strace')
    return trace.read_text(errors='replace').splitlines()


@pytest.mark.parametrize(
    ('where', 'file'), [('sqlite:{}/runs.db', 'runs.db-wal'), ('files:{}/runs', 'run-1/records.jsonl')]
)
def test_the_mark_is_flushed_before_the_effect_begins(tmp_path: Path, where: str, file: str) -> None:
    effect = tmp_path / 'effect'
    command = [sys.executable, '-c', _PROGRAM, where.format(tmp_path), str(effect)]
    calls = _calls(command, tmp_path / 'trace')
    begins = next(at for at, call in enumerate(calls) if 'open' in call and f'"{effect}"' in call)
    before = [call for call in calls[:begins] if f'{file}>' in call]
    written = [call for call in before if 'write' in call]
    flushed = [call for call in before if 'sync(' in call]
    assert written
    assert flushed
    assert before[-1] == flushed[-1]  # nothing was written since
    assert len(flushed) <= 3  # and not after each record: SQLite flushes a new file twice


# PostgreSQL: what its server had in memory is lost --------------------------------------------------------------------


async def test_the_mark_survives_a_crash_of_the_server() -> None:
    server = PostgresServer()
    try:
        server.start()
        assert await _kinds_after_crash(server) == ['opened', 'noted', 'started']
    finally:
        server.close()


async def _kinds_after_crash(server: PostgresServer) -> list[str]:
    """What is left of a run whose server crashes right after the mark."""
    store = PostgresStore(f'{server.url}&durability=normal')
    journal = await Journal.create(store, RunInfo(run='run-1'), {'inputs': 1})
    await journal.write('noted', '')
    await journal.write('started', 'pay#1')
    server.kill()
    server.start()
    await store.close()  # the next call connects again
    kinds = [record.kind for record in await store.load('run-1')]
    await journal.close()
    await store.close()
    return kinds


# SQLite: its settings, also where system calls cannot be traced -------------------------------------------------------


@pytest.mark.parametrize('full', [False, True])
async def test_sqlite_waits_for_the_disk_where_it_must_and_nowhere_else(tmp_path: Path, full: bool) -> None:
    file = SqliteFile(tmp_path / 'runs.db', full=full)
    seen: list[int] = []

    def note(connection: sqlite3.Connection) -> None:
        seen.append(connection.execute('PRAGMA synchronous').fetchone()[0])

    for sync in (False, True, True, False):
        await file.change(note, sync=sync)
    file.close()
    await file.do(note)
    file.close()
    assert seen == ([2] * 5 if full else [1, 2, 2, 1, 1])  # 1: NORMAL, 2: FULL
