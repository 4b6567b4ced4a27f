"""Files of a stranger's folder: pipes, devices, folders and giants are errors, and nothing waits for them."""

import os
from pathlib import Path

import pytest

from habilis.core.errors import SettingsError
from habilis.core.regular_files import read_regular, read_regular_text
from habilis.core.settings import load_settings
from habilis.forge.build.lessons import Lessons
from habilis.models.files import File
from tests.place import Place


def test_text_has_the_line_ends_that_python_reads(tmp_path: Path) -> None:
    (tmp_path / 'text').write_bytes('a\r\nb\rü\n'.encode())
    assert read_regular_text(tmp_path / 'text') == (tmp_path / 'text').read_text(encoding='utf-8')


def test_what_is_no_file_or_too_large_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / 'pipe')
    with (tmp_path / 'giant').open('wb') as file:
        file.truncate(1 << 40)
    for path, reason in (
        (tmp_path / 'pipe', 'not a regular file'),
        (Path('/dev/zero'), 'not a regular file'),
        (tmp_path, 'not a regular file|directory'),
        (tmp_path / 'giant', 'bytes, more than'),
    ):
        with pytest.raises(OSError, match=reason):
            read_regular(path)


@pytest.mark.parametrize('name', ['habilis.toml', '.env'])
def test_a_pipe_in_place_of_the_settings_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    place = Place(tmp_path, monkeypatch)
    os.mkfifo(place.folder / name)
    with pytest.raises(SettingsError, match='not a regular file'):
        load_settings()


def test_a_pipe_in_place_of_other_files_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / 'pipe')
    assert Lessons(tmp_path / 'pipe').read() == []
    with pytest.raises(OSError, match='not a regular file'):
        File(tmp_path / 'pipe')
