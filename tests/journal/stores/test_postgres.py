"""`PostgresStore` does what the contract says, and stands what a server does to it."""

import contextlib
import hashlib
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from habilis.core.errors import CorruptRecord, JournalError, RunNotFound, SettingsError, StoreUnavailable
from habilis.journal.contract import RunInfo, Store
from habilis.journal.encoding import digest_of
from habilis.journal.stores.conformance import StoreConformance
from habilis.journal.stores.conformance_values import records
from habilis.journal.stores.postgres import PostgresStore
from habilis.journal.stores.server_address import StorePackageMissing
from tests.cases import each_case
from tests.journal.sample import VERSIONS, assert_is_sample
from tests.journal.server_faults import ServerFaults, new_name
from tests.journal.servers import PostgresServer, Server
from tests.journal.writer import RUN

SECRET = 's3cret-pass'


def schema_of(place: Path) -> str:
    return f'test_{hashlib.sha256(str(place).encode()).hexdigest()[:12]}'


async def execute(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Behind the back of the store. What the last statement gives."""
    url = url.partition('&schema=')[0]
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = connection.cursor()
        for statement in statements:
            await cursor.execute(statement.encode())
        return await cursor.fetchall() if cursor.description else []


class TestPostgres(StoreConformance):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    async def connect(self, place: Path) -> Store:
        return PostgresStore(self.url, schema=schema_of(place), durability='normal')

    async def clean(self, place: Path) -> None:
        await execute(self.url, f'DROP SCHEMA IF EXISTS {schema_of(place)} CASCADE')


class TestFaults(ServerFaults):
    def make_server(self) -> Server:
        return PostgresServer()

    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return f'{postgres_url}&schema={new_name()}'

    @contextlib.asynccontextmanager
    async def held_up(self, url: str) -> AsyncGenerator[None]:
        url, _, schema = url.partition('&schema=')
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await connection.execute(f'LOCK TABLE {schema}.runs'.encode())
            yield

    async def damage(self, url: str, seq: int, line: str | None) -> None:
        schema = url.partition('&schema=')[2]
        change = f'DELETE FROM {schema}.lines' if line is None else f"UPDATE {schema}.lines SET line = '{line}'"
        await execute(url, f'{change} WHERE seq = {seq}')


@pytest.fixture
def schema() -> str:
    return new_name()


@pytest_asyncio.fixture
async def store(postgres_url: str, schema: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url, schema=schema)
    yield store
    await store.close()


# The schema -----------------------------------------------------------------------------------------------------------


async def test_the_journal_of_the_first_version_is_read(postgres_url: str) -> None:
    database = new_name()
    await execute(postgres_url, f'CREATE DATABASE {database}')
    url = postgres_url.replace('/postgres?', f'/{database}?')
    await execute(url, (VERSIONS / '1' / 'postgres.sql').read_text())
    store = PostgresStore(url)
    await assert_is_sample(store)
    await store.close()


async def test_tables_of_a_newer_version_are_refused(postgres_url: str, schema: str, store: PostgresStore) -> None:
    await store.create(RunInfo(run=RUN))
    await execute(postgres_url, f'UPDATE {schema}.about SET version = 2')
    other = PostgresStore(postgres_url, schema=schema)
    for _ in range(2):
        with pytest.raises(JournalError, match='version 2, this one reads 1'):
            await other.info(RUN)


async def test_a_schema_that_somebody_made_before_is_used(postgres_url: str, schema: str, store: PostgresStore) -> None:
    await execute(postgres_url, f'CREATE SCHEMA {schema}', f'CREATE TABLE {schema}.mine (a int)')
    assert await store.create(RunInfo(run=RUN))
    assert await execute(postgres_url, f'SELECT * FROM {schema}.mine') == []


async def test_two_schemas_of_a_database_are_apart(postgres_url: str, store: PostgresStore) -> None:
    await store.create(RunInfo(run=RUN))
    other = PostgresStore(f'{postgres_url}&schema={new_name()}')
    assert await other.runs() == []
    with pytest.raises(RunNotFound):
        await other.info(RUN)
    await other.close()


@each_case('name', ['', 'a b', 'a"b', "a'; DROP SCHEMA public", '1a', 'ä', 'a' * 64, 'a.b', '$s$'])
def test_a_name_that_is_none_for_a_schema_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match='schema'):
        PostgresStore('postgresql://localhost/db', schema=name)


async def test_a_schema_may_have_a_name_in_capitals(postgres_url: str, schema: str) -> None:
    store = PostgresStore(postgres_url, schema=schema.upper())
    assert await store.create(RunInfo(run=RUN))
    assert [info.run for info in await store.runs()] == [RUN]
    await store.close()


# The session ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('server', 'asked', 'set_to'),
    [
        ('on', 'full', 'on'),
        ('off', 'full', 'on'),
        ('remote_apply', 'full', 'remote_apply'),
        ('on', 'normal', 'off'),
    ],
)
async def test_how_durable_an_append_is_can_be_chosen(
    postgres_url: str, schema: str, server: str, asked: str, set_to: str
) -> None:
    options = f'options=-c%20synchronous_commit%3D{server}'
    store = PostgresStore(f'{postgres_url}&{options}&schema={schema}&durability={asked}')
    await store.create(RunInfo(run=RUN))
    await execute(
        postgres_url,
        f'CREATE FUNCTION {schema}.tell() RETURNS trigger LANGUAGE plpgsql AS '
        "$$ BEGIN NEW.line := current_setting('synchronous_commit'); RETURN NEW; END $$",
        f'CREATE TRIGGER tell BEFORE INSERT ON {schema}.lines FOR EACH ROW EXECUTE FUNCTION {schema}.tell()',
    )
    lease = await store.claim(RUN, owner='me', seconds=60)
    await store.append(RUN, records(1), epoch=lease.epoch)
    assert await execute(postgres_url, f'SELECT line FROM {schema}.lines') == [(set_to,)]
    await store.close()


async def test_a_database_that_is_set_to_serializable_makes_no_difference(postgres_url: str, schema: str) -> None:
    url = f'{postgres_url}&options=-c%20default_transaction_isolation%3Dserializable'
    store, other = PostgresStore(url, schema=schema), PostgresStore(url, schema=schema)
    await store.create(RunInfo(run=RUN))
    lease = await store.claim(RUN, owner='me', seconds=60)
    for seq in range(1, 20):
        await store.append(RUN, records(1, first=seq), epoch=lease.epoch)
        await other.append(RUN, records(1, first=seq), epoch=lease.epoch)
    assert await other.load(RUN) == records(19)
    await store.close()
    await other.close()


async def test_an_append_is_one_request(postgres_url: str, schema: str, store: PostgresStore) -> None:
    await store.create(RunInfo(run=RUN))
    lease = await store.claim(RUN, owner='me', seconds=60)
    await execute(
        postgres_url,
        f'CREATE TABLE {schema}.seen (xid xid8, at timestamptz)',
        f'CREATE FUNCTION {schema}.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN '
        f'INSERT INTO {schema}.seen VALUES (pg_current_xact_id(), statement_timestamp()); RETURN NULL; END $$',
        f'CREATE TRIGGER see AFTER UPDATE ON {schema}.runs FOR EACH ROW EXECUTE FUNCTION {schema}.see()',
        f'CREATE TRIGGER see AFTER INSERT ON {schema}.lines FOR EACH ROW EXECUTE FUNCTION {schema}.see()',
        f'CREATE TRIGGER see AFTER INSERT ON {schema}.blobs FOR EACH ROW EXECUTE FUNCTION {schema}.see()',
    )
    await store.append(RUN, records(1), epoch=lease.epoch)
    await store.append(
        RUN, records(2, first=2), epoch=lease.epoch, info=RunInfo(run=RUN), blobs={digest_of(b'x'): b'x'}
    )
    rows = await execute(postgres_url, f'SELECT xid, at, count(*) FROM {schema}.seen GROUP BY xid, at ORDER BY at')
    assert [count for _, _, count in rows] == [2, 4]


# Refusals -------------------------------------------------------------------------------------------------------------


async def test_a_wrong_password_is_said_in_a_line_that_does_not_show_it(postgres_url: str, schema: str) -> None:
    with contextlib.suppress(psycopg.errors.DuplicateObject):
        await execute(postgres_url, f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
    database = new_name()
    await execute(postgres_url, f'CREATE DATABASE {database}')
    url = postgres_url.replace('habilis@/postgres', f'guarded:WORD@/{database}')
    for wrong in ('wrong-' + SECRET, 'wr%40ng', 'x'):
        with pytest.raises(StoreUnavailable, match='password authentication failed for user "guarded"') as caught:
            await PostgresStore(url.replace('WORD', wrong), schema=schema).runs()
        assert not caught.value.passing
        assert '\n' not in str(caught.value)
        assert not {wrong, 'wr@ng'} & set(str(caught.value).replace(':', ' ').split())
        assert caught.value.__cause__ is None
    with pytest.raises(StoreUnavailable, match=f'permission denied for database {database}') as caught:
        await PostgresStore(url.replace('WORD', SECRET), schema=schema).runs()
    assert not caught.value.passing
    await execute(postgres_url, f'GRANT CREATE ON DATABASE {database} TO guarded')
    store = PostgresStore(url.replace('WORD', SECRET), schema=schema)
    assert await store.runs() == []
    await store.close()


@pytest.mark.parametrize('host', ['127.0.0.1:1', 'nowhere.invalid'])
async def test_a_wrong_host_is_said_in_a_line_without_the_password(host: str) -> None:
    store = PostgresStore(f'postgresql://ada:{SECRET}@{host}/db')
    with pytest.raises(StoreUnavailable, match=f'the journal at postgresql://{host}/db is unavailable: ') as caught:
        await store.runs()
    assert caught.value.passing
    assert SECRET not in str(caught.value) + repr(store)
    assert '\n' not in str(caught.value)


async def test_an_unknown_database_is_named(postgres_url: str) -> None:
    with pytest.raises(StoreUnavailable, match='database "nowhere" does not exist') as caught:
        await PostgresStore(postgres_url.replace('/postgres?', '/nowhere?')).runs()
    assert not caught.value.passing


async def test_a_read_only_server_is_named(postgres_url: str, schema: str, store: PostgresStore) -> None:
    await store.create(RunInfo(run=RUN))
    url = f'{postgres_url}&options=-c%20default_transaction_read_only%3Don'
    other = PostgresStore(url, schema=schema)
    assert (await other.info(RUN)).run == RUN
    with pytest.raises(StoreUnavailable, match='read-only transaction'):
        await other.claim(RUN, owner='me', seconds=60)
    await other.close()


async def test_a_connection_that_an_operator_ends_is_made_again(postgres_url: str, store: PostgresStore) -> None:
    await store.create(RunInfo(run=RUN))
    ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'habilis'"
    await execute(postgres_url, ends)
    with pytest.raises(StoreUnavailable) as caught:
        await store.info(RUN)
    assert caught.value.passing
    assert (await store.info(RUN)).run == RUN


@each_case(
    'url',
    [
        'http://localhost/',
        f'host=localhost password={SECRET}',
        f'postgresql://ada:{SECRET}/more@host/db',
        f'postgresql://ada:{SECRET}?more@host/db',
        f'postgresql://ada:{SECRET}#more@host/db',
        f'postgresql://ada:a@{SECRET}@host/db',
        f'postgresql://ada:{SECRET}@[::1/db',
        f'postgresql://ada:{SECRET}%zz@host/db',
        f'postgresql://ada:{SECRET}@host:port/db',
        f'postgresql://ada:{SECRET}',
        f'postgresql://ada:{SECRET}@host/db?nonsense=1',
        f'postgresql://ada:{SECRET}@host/db?durability=some',
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        PostgresStore(url)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'psycopg', None)
    with pytest.raises(StorePackageMissing, match=r"pip install 'habilis\[postgres\]'") as caught:
        PostgresStore('postgresql://localhost/db')
    assert isinstance(caught.value, ImportError)


async def test_a_damaged_description_does_not_hide_other_runs(
    postgres_url: str, schema: str, store: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    for run in (RUN, 'run-2'):
        await store.create(RunInfo(run=run))
    await execute(postgres_url, f"UPDATE {schema}.runs SET info = '{{' WHERE run = '{RUN}'")
    assert [info.run for info in await store.runs()] == ['run-2']
    assert f'{RUN} is not listed' in caplog.text


async def test_a_damaged_blob_is_named(postgres_url: str, schema: str, store: PostgresStore) -> None:
    await store.create(RunInfo(run=RUN))
    lease = await store.claim(RUN, owner='me', seconds=60)
    await store.append(RUN, [], epoch=lease.epoch, blobs={digest_of(b'x'): b'x'})
    await execute(postgres_url, f"UPDATE {schema}.blobs SET data = 'y'")
    with pytest.raises(CorruptRecord, match='damaged'):
        await store.blob(RUN, digest_of(b'x'))


async def test_a_deleted_run_leaves_no_row(postgres_url: str, schema: str, store: PostgresStore) -> None:
    await store.create(RunInfo(run=RUN))
    lease = await store.claim(RUN, owner='me', seconds=60)
    await store.append(RUN, records(3), epoch=lease.epoch, blobs={digest_of(b'x'): b'x'})
    await store.delete(RUN)
    for table in ('runs', 'lines', 'blobs'):
        assert await execute(postgres_url, f'SELECT * FROM {schema}.{table}') == []
