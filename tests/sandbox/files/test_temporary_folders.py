"""Temporary folders go with their process, also with one that is killed: the next one sees to it."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.sandbox.files import temporary_folders

MAKE = """
import sys
from habilis.sandbox.files.temporary_folders import temporary_folder
folder, remove = temporary_folder()
(folder / 'file').write_text('x')
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made, by a process that has made none yet."""
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    return tmp_path


@pytest.fixture
def other(place: Path) -> Iterator['subprocess.Popen[str]']:
    """Another process, which has made one there."""
    environment = {**os.environ, 'TMPDIR': str(place)}
    with subprocess.Popen(
        [sys.executable, '-c', MAKE], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_folder_is_there_until_it_is_removed(place: Path) -> None:
    before = set(os.listdir('/dev/fd'))
    folder, remove = temporary_folders.temporary_folder()
    assert list(place.iterdir()) == [folder]
    assert folder.stat().st_mode & 0o777 == 0o700
    remove()
    assert list(place.iterdir()) == []
    assert set(os.listdir('/dev/fd')) == before


def test_the_folder_of_a_killed_process_is_removed_by_the_next(place: Path, other: 'subprocess.Popen[str]') -> None:
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert [(path / 'file').read_text() for path in place.iterdir()] == ['x']
    folder, remove = temporary_folders.temporary_folder()
    assert list(place.iterdir()) == [folder]
    remove()


@pytest.mark.usefixtures('other')
def test_the_folder_of_a_process_that_lives_stays(place: Path) -> None:
    _, remove = temporary_folders.temporary_folder()
    remove()
    assert [(path / 'file').read_text() for path in place.iterdir()] == ['x']


def test_what_only_looks_like_one_stays(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp('elsewhere')
    (elsewhere / 'file').touch()
    (place / 'habilis-workspace-link').symlink_to(elsewhere)
    (place / 'habilis-workspace-file').touch()
    (place / 'mine').mkdir()
    _, remove = temporary_folders.temporary_folder()
    remove()
    left = sorted(path.name for path in place.iterdir())
    assert left == ['habilis-workspace-file', 'habilis-workspace-link', 'mine']
    assert (elsewhere / 'file').exists()


def test_one_whose_process_was_killed_before_it_could_lock_it_is_removed(place: Path) -> None:
    (place / 'habilis-new-1').mkdir()
    _, remove = temporary_folders.temporary_folder()
    remove()
    assert list(place.iterdir()) == []


@pytest.mark.parametrize('taken', ['locked', 'removed'])
def test_one_that_is_taken_for_such_a_folder_while_it_is_made_is_made_again(
    place: Path, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, held = tempfile.mkdtemp, list[int]()

    def make_slowly(*, prefix: str) -> str:
        folder = make(prefix=prefix)
        if not held:
            held.append(os.open(folder, os.O_RDONLY))
            if taken == 'locked':
                fcntl.flock(held[0], fcntl.LOCK_EX)
            else:
                os.rmdir(folder)
        return folder

    monkeypatch.setattr(tempfile, 'mkdtemp', make_slowly)
    folder, remove = temporary_folders.temporary_folder()
    assert folder.is_dir()
    assert folder.name.startswith('habilis-workspace-')
    remove()
    os.close(held[0])
