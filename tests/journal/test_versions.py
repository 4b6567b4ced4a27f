"""What any version has ever written can be read, for ever."""

import shutil
from pathlib import Path

import pytest

from habilis.journal.contract import SCHEMA
from habilis.journal.copies import export_run, import_run
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.memory import MemoryStore
from habilis.journal.stores.sqlite import SqliteStore
from tests.journal.versions.story import check

VERSIONS = Path(__file__).with_name('versions')
every_version = pytest.mark.parametrize('version', range(1, SCHEMA + 1))


@every_version
async def test_a_database_can_be_read_and_continues(tmp_path: Path, version: int) -> None:
    shutil.copyfile(VERSIONS / str(version) / 'journal.db', tmp_path / 'journal.db')
    await check(SqliteStore(tmp_path / 'journal.db'))


@every_version
async def test_a_folder_of_files_can_be_read_and_continues(tmp_path: Path, version: int) -> None:
    shutil.copytree(VERSIONS / str(version) / 'files', tmp_path / 'files')
    await check(FileStore(tmp_path / 'files'))


@every_version
async def test_an_exported_run_can_be_read_and_continues(version: int) -> None:
    text = (VERSIONS / str(version) / 'run-1.txt').read_text(encoding='ascii')
    store = MemoryStore()
    await import_run(store, text)
    if version == SCHEMA:
        assert await export_run(store, 'run-1') == text
    await check(store, epoch=0)
