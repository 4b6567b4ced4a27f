"""`open_store`: which text is which store."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import SettingsError
from habilis.core.folders import data_folder
from habilis.journal.contract import RunInfo, Store
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.memory import MemoryStore
from habilis.journal.stores.postgres import PostgresStore
from habilis.journal.stores.redis import RedisStore
from habilis.journal.stores.server_address import StorePackageMissing
from habilis.journal.stores.sqlite import SqliteStore
from habilis.journal.stores.urls import open_store
from tests.cases import each_case


@each_case(
    ('where', 'kind'),
    [
        ('off', MemoryStore),
        ('memory:', MemoryStore),
        ('sqlite:runs', SqliteStore),
        ('sqlite:/var/runs.db?durability=full', SqliteStore),
        ('runs.db', SqliteStore),
        ('~/a b/runs.sqlite', SqliteStore),
        ('./runs.sqlite3?durability=normal', SqliteStore),
        (Path('runs.db'), SqliteStore),
        ('files:runs', FileStore),
        ('files:runs.db', FileStore),
        ('files:/var/runs?durability=full', FileStore),
        ('runs/', FileStore),
        ('postgres://host/db', PostgresStore),
        ('postgresql://host/db?durability=normal', PostgresStore),
        ('redis://host', RedisStore),
        ('rediss://host:6379/1', RedisStore),
        ('unix:///run/redis.sock?db=1', RedisStore),
    ],
)
def test_a_store_is_chosen_by_its_text(where: str | Path, kind: type[Store]) -> None:
    assert type(open_store(where)) is kind


def test_the_default_is_a_file_in_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path / 'data'))
    store = open_store(None)
    assert isinstance(store, SqliteStore)
    assert store.path == tmp_path / 'data' / 'runs.db'
    assert not store.path.parent.exists()


def test_the_data_folder_is_the_users_unless_one_is_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ('HABILIS_DATA', 'XDG_DATA_HOME'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('HOME', str(tmp_path))
    assert data_folder() == tmp_path / '.local' / 'share' / 'habilis'
    monkeypatch.setenv('XDG_DATA_HOME', str(tmp_path / 'xdg'))
    assert data_folder() == tmp_path / 'xdg' / 'habilis'
    monkeypatch.setenv('HABILIS_DATA', '~/chosen')
    assert data_folder() == tmp_path / 'chosen'


def test_an_existing_folder_is_one_of_files_whatever_its_name(tmp_path: Path) -> None:
    for name in ('runs', 'runs.db'):
        (tmp_path / name).mkdir()
        assert isinstance(open_store(tmp_path / name), FileStore)
        assert isinstance(open_store(str(tmp_path / name)), FileStore)


async def test_the_path_is_taken_as_it_is_with_question_marks_and_colons(tmp_path: Path) -> None:
    for where in (f'sqlite:{tmp_path}/what?:x.db', tmp_path / 'sqlite:a?durability=full.db'):
        store = open_store(where)
        await store.create(RunInfo(run='run-1'))
        await store.close()
    assert {path.name for path in tmp_path.iterdir()} >= {'what?:x.db', 'sqlite:a?durability=full.db'}


def test_a_path_in_the_home_folder_may_be_written_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv('HOME', str(tmp_path))
    store = open_store('sqlite:~/runs')
    assert isinstance(store, SqliteStore)
    assert store.path == tmp_path / 'runs'


def test_a_store_is_given_back_as_it_is() -> None:
    store = MemoryStore()
    assert open_store(store) is store


def test_each_time_memory_is_new() -> None:
    assert open_store('off') is not open_store('off')


@each_case(
    'where',
    [
        *('', ' ', 'on', 'runs', 'redis', 'postgres', 'runs.txt', '~nobody-knows/runs.db', 'a\x00.db', 'n' * 5000),
        *('sqlite:', 'files:', 'sqlite:?durability=full', '://', 'mysql://host/db', 'sqlite:///runs.db'),
        Path('no-such-folder'),
    ],
)
def test_anything_else_is_refused_with_what_is_possible(where: str | Path) -> None:
    with pytest.raises(SettingsError, match=r'sqlite:FILE.*files:FOLDER.*postgresql://.*redis://'):
        open_store(where)


@pytest.mark.parametrize('where', ['runs.db', 'files:runs', 'sqlite:runs', 'postgresql://host/db'])
def test_an_unknown_durability_is_refused(where: str) -> None:
    with pytest.raises(SettingsError, match="'some' is not a valid durability: use normal or full"):
        open_store(f'{where}?durability=some')


@pytest.mark.parametrize('where', ['postgresql:ada:s3cret@host/db', 'ada:s3cret@host', 'mysql://ada:s3cret@host/db'])
def test_what_may_be_a_password_is_not_shown(where: str) -> None:
    with pytest.raises(SettingsError) as caught:
        open_store(where)
    assert 's3cret' not in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_a_store_or_refused(where: str) -> None:
    try:
        store = open_store(where)
    except SettingsError:
        return
    assert isinstance(store, Store)


@pytest.mark.parametrize(
    ('where', 'package', 'extra'),
    [('postgresql://host/db', 'psycopg', 'postgres'), ('redis://host', 'redis.asyncio', 'redis')],
)
def test_a_package_that_is_missing_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, where: str, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StorePackageMissing, match=rf"pip install 'habilis\[{extra}\]'"):
        open_store(where)


@pytest.mark.parametrize(
    ('where', 'loaded'),
    [('off', []), ('runs.db', ['sqlite3']), ('postgresql://host/db', ['psycopg']), ('redis://host', ['redis'])],
)
def test_only_what_a_store_needs_is_imported(where: str, loaded: list[str]) -> None:
    code = (
        'import sys; from habilis.journal.stores.urls import open_store; open_store(sys.argv[1]); '
        "print(*[name for name in ('psycopg', 'redis', 'sqlite3') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, '-c', code, where], capture_output=True, text=True, check=True)
    assert found.stdout.split() == loaded
