"""Disks that are full, or may not be written."""

import ctypes
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.journal.troubled import MORE
from tests.journal.writer import RUN, add, begin, make_store

ROOT = Path(__file__).parents[2]
KINDS = ('sqlite', 'files')


def _mount(folder: str) -> list[str]:
    """The beginning of a command that runs where this folder is a very small disk."""
    mount = f'mount -t tmpfs -o size=1m none {shlex.quote(folder)} && exec "$@"'
    return ['unshare', '--map-root-user', '--mount', 'sh', '-c', mount, 'sh']


def _may_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return subprocess.run([*_mount(folder), 'true'], capture_output=True, check=False).returncode == 0
        except OSError:
            return False


# A limit on the size of files can be had everywhere, a real disk that is full only where one may mount it.
FULL = ('limit', 'disk') if _may_mount() else ('limit',)


def _like_anybody() -> None:
    """Root may write everywhere. Without these two capabilities it is as bound by permissions as everybody."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, 'prctl'):
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def troubled(how: str, kind: str, folder: Path) -> dict[str, Any]:
    """What a process in trouble says."""
    command = [sys.executable, '-m', 'tests.journal.troubled', how, kind, str(folder)]
    command = [*_mount(str(folder)), *command] if how == 'disk' else command
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=_like_anybody)
    assert (done.returncode, done.stderr) == (0, '')
    return json.loads(done.stdout)


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('how', FULL)
def test_a_full_disk_is_named_and_when_there_is_room_again_the_same_store_continues(
    tmp_path: Path, kind: str, how: str
) -> None:
    said = troubled(how, kind, tmp_path)
    assert said['before'] > 1
    assert said['after'] >= said['before'] + MORE
    assert said['passing'] == [False] * 3
    for refusal in said['refusals']:
        assert refusal.startswith(f'the journal at {tmp_path}/journal is unavailable: ')
        assert how == 'limit' or 'the disk is full; free some space' in refusal


@pytest.fixture(params=KINDS)
async def read_only(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, Path]]:
    """A store with a run in it, which may be read and not written."""
    store = make_store(request.param, str(tmp_path / 'journal'))
    epoch, last = await begin(store)
    await add(store, epoch, last)
    await store.close()
    if request.param == 'files':  # an append that a process which died has planned
        shutil.copy(tmp_path / 'journal' / RUN / 'info.json', tmp_path / 'journal' / RUN / 'pending.json')
    everything = [tmp_path, *tmp_path.rglob('*')]
    for path in everything:
        path.chmod(0o500 if path.is_dir() else 0o400)
    yield request.param, tmp_path
    for path in everything:
        path.chmod(0o700)


def test_a_store_that_may_not_be_written_says_so(read_only: tuple[str, Path]) -> None:
    kind, folder = read_only
    said = troubled('read', kind, folder)
    for name in ('append', 'claim', 'create', 'delete'):
        assert said[name].startswith(f'StoreUnavailable: the journal at {folder}/journal is unavailable: ')
        assert ('permission denied' if kind == 'files' else 'read-only') in said[name]
    assert said['load'] == said['runs'] == ''


LEFT: dict[str, tuple[str, ...]] = {'all': (), 'no_shm': ('journal-shm',), 'no_wal': ('journal-wal', 'journal-shm')}
"""Files of SQLite that are not there, as after a copy."""


@pytest.mark.parametrize('without', LEFT)
async def test_what_a_killed_process_left_in_a_read_only_folder_is_read_or_refused(
    tmp_path: Path, without: str
) -> None:
    store = make_store('sqlite', str(tmp_path / 'first' / 'journal'))
    epoch, last = await begin(store)
    await add(store, epoch, last)
    shutil.copytree(tmp_path / 'first', tmp_path / 'left')  # as it would be after a kill
    await store.close()
    if without == 'no_wal':
        shutil.copy(tmp_path / 'first' / 'journal', tmp_path / 'left')
    for name in LEFT[without]:
        (tmp_path / 'left' / name).unlink()
    for path in (tmp_path / 'left').iterdir():
        path.chmod(0o400)
    (tmp_path / 'left').chmod(0o500)
    try:
        said = troubled('read', 'sqlite', tmp_path / 'left')
    finally:
        (tmp_path / 'left').chmod(0o700)
    if without == 'no_shm':
        assert 'journal-wal has changes; copy both files to a writable folder' in said['load']
    else:
        assert said['load'] == said['runs'] == ''


@pytest.mark.parametrize('kind', KINDS)
def test_a_store_that_may_not_be_made_says_so(tmp_path: Path, kind: str) -> None:
    tmp_path.chmod(0o500)
    try:
        said = troubled('read', kind, tmp_path)
    finally:
        tmp_path.chmod(0o700)
    assert said['create'].startswith(f'StoreUnavailable: the journal at {tmp_path}/journal is unavailable: ')
    assert list(tmp_path.iterdir()) == []
