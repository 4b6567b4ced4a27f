"""Folders of Habilis on this machine."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from habilis.core.folders import cache_folder, config_folder, data_folder, responses_folder

FOLDERS = [
    (cache_folder, 'XDG_CACHE_HOME', '.cache/habilis'),
    (config_folder, 'XDG_CONFIG_HOME', '.config/habilis'),
    (data_folder, 'XDG_DATA_HOME', '.local/share/habilis'),
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, and no variable that names another folder."""
    for name in ('HABILIS_CACHE', 'HABILIS_DATA', *(variable for _, variable, _ in FOLDERS)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('HOME', str(tmp_path))
    return tmp_path


@pytest.mark.skipif(sys.platform != 'linux', reason='other systems have other folders')
@pytest.mark.parametrize(('folder', 'variable', 'path'), FOLDERS)
def test_folders_on_linux_follow_the_xdg_specification(
    folder: Callable[[], Path], variable: str, path: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folder() == home / path
    monkeypatch.setenv(variable, str(home / 'other'))
    assert folder() == home / 'other' / 'habilis'


@pytest.mark.parametrize(('folder', 'variable'), [(cache_folder, 'HABILIS_CACHE'), (data_folder, 'HABILIS_DATA')])
def test_a_variable_names_another_folder(
    folder: Callable[[], Path], variable: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, '~/chosen')
    assert folder() == home / 'chosen'


def test_responses_are_kept_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_CACHE', '/chosen')
    assert responses_folder() == Path('/chosen/responses')
