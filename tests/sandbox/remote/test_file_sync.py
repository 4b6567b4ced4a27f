"""Two folders that are kept alike, and a side that means harm."""

import base64
import contextlib
import os
from pathlib import Path

import pytest

from habilis.core.codec import CodecError, Json, dump
from habilis.core.errors import WorkspaceError
from habilis.sandbox.remote import file_sync
from habilis.sandbox.remote.file_sync import SyncedFolder, apply, collect


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / 'here').mkdir()
    (tmp_path / 'there').mkdir()
    return tmp_path / 'here'


def _sync(source: SyncedFolder, sink: SyncedFolder) -> int:
    bodies = list(collect([source]))
    for body in bodies:
        apply([sink], body)
    return len(bodies)


def test_files_folders_and_removals_are_carried_over_and_not_back(here: Path) -> None:
    there = here.parent / 'there'
    left, right = SyncedFolder(here, writable=True), SyncedFolder(there, writable=True)
    (here / 'a/b').mkdir(parents=True)
    (here / 'a/b/file').write_bytes(bytes(range(256)))
    (here / 'strange "\n name').touch()
    (here / 'link').symlink_to('/etc/passwd')
    os.mkfifo(here / 'pipe')
    assert _sync(left, right) == 1
    assert sorted(path.relative_to(there).as_posix() for path in there.rglob('*')) == [
        'a',
        'a/b',
        'a/b/file',
        'strange "\n name',
    ]
    assert _sync(right, left) == _sync(left, right) == 0
    (there / 'a/b/file').write_text('changed')
    (there / 'strange "\n name').unlink()
    assert _sync(right, left) == 1
    assert (here / 'a/b/file').read_text() == 'changed'
    assert not (here / 'strange "\n name').exists()
    for path in ('a/b/file', 'a/b', 'a'):
        (here / path).unlink() if path == 'a/b/file' else (here / path).rmdir()
    _sync(left, right)
    assert list(there.iterdir()) == []


@pytest.mark.parametrize(
    'path', ['link/x', 'link', 'dir', '../x', '/x', 'a/../x', '', '.', './x', 'x\0', 'missing/x', 'x/']
)
@pytest.mark.parametrize('operation', ['file', 'folder', 'remove', 'remove-folder'])
def test_the_other_side_reaches_nothing_outside(here: Path, path: str, operation: str) -> None:
    outside = here.parent / 'outside'
    outside.mkdir()
    (outside / 'x').write_text('safe')
    (here / 'link').symlink_to(outside)
    (here / 'dir').mkdir()
    before = {entry: entry.read_text() for entry in here.parent.rglob('*') if entry.is_file()}
    change: list[Json] = [0, operation, path, *([base64.b64encode(b'evil').decode()] if operation == 'file' else [])]
    with contextlib.suppress(CodecError, WorkspaceError):
        apply([SyncedFolder(here, writable=True)], dump([change]))
    assert {entry: entry.read_text() for entry in here.parent.rglob('*') if entry.is_file()} == before


def test_a_folder_that_is_read_only_is_not_changed_by_the_side_of_the_guest(here: Path) -> None:
    folder = SyncedFolder(here, writable=False)
    with pytest.raises(CodecError, match='may not change this folder'):
        apply([folder], dump([[0, 'folder', 'x']]), writable_only=True)
    (here / 'x').touch()
    assert list(collect([folder], writable_only=True)) == []


def test_too_much_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SyncedFolder(here, writable=True)
    monkeypatch.setattr(file_sync, 'MAX_FILES', 3)
    monkeypatch.setattr(file_sync, 'MAX_BYTES', 100)
    monkeypatch.setattr(file_sync, 'MAX_FILE_BYTES', 60)
    (here / 'large').write_bytes(bytes(61))
    with pytest.raises(
        WorkspaceError, match='large has 61 bytes; a remote sandbox copies its folders, and may have 60'
    ):
        list(collect([folder]))
    (here / 'large').write_bytes(bytes(60))
    (here / 'more').write_bytes(bytes(60))
    with pytest.raises(WorkspaceError, match='the folder has 120 bytes'):
        list(collect([folder]))
    for number in range(5):
        (here / str(number)).touch()
    (here / 'more').unlink()
    with pytest.raises(WorkspaceError, match='may have 3 files'):
        list(collect([folder]))
    sink = SyncedFolder(here.parent / 'there', writable=True)
    flood = dump([[0, 'file', str(number), base64.b64encode(bytes(40)).decode()] for number in range(5)])
    with pytest.raises(WorkspaceError, match='the folder has'):
        apply([sink], flood)


def test_links_count_as_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_sync, 'MAX_FILES', 3)
    for number in range(4):
        (here / str(number)).symlink_to('nowhere')
    with pytest.raises(WorkspaceError, match='may have 3 files'):
        list(collect([SyncedFolder(here, writable=True)]))
