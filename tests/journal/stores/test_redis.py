"""`RedisStore` does what the contract says, and stands what a server does to it."""

import contextlib
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio
import redis.asyncio

from habilis.core.errors import CorruptRecord, JournalError, RunNotFound, SettingsError, StoreUnavailable
from habilis.journal.contract import RunInfo, Store
from habilis.journal.encoding import digest_of
from habilis.journal.stores.conformance import StoreConformance
from habilis.journal.stores.conformance_values import records
from habilis.journal.stores.redis import RedisStore
from habilis.journal.stores.server_address import StorePackageMissing
from tests.cases import each_case
from tests.journal.sample import VERSIONS, assert_is_sample, to_redis
from tests.journal.server_faults import ServerFaults, new_name
from tests.journal.servers import RedisServer, Server
from tests.journal.writer import RUN

SECRET = 's3cret-pass'


async def execute(url: str, *command: object) -> Any:
    """Behind the back of the store."""
    connect = cast('Callable[[str], Any]', redis.asyncio.Redis.from_url)  # pyright: ignore[reportUnknownMemberType]
    async with connect(url.partition('?prefix=')[0]) as client:
        return await client.execute_command(*command)


class TestRedis(StoreConformance):
    @pytest.fixture(autouse=True)
    def _server(self, redis_url: str) -> None:
        self.url = redis_url

    async def connect(self, place: Path) -> Store:
        return RedisStore(self.url, prefix=f'{place}:')

    async def clean(self, place: Path) -> None:
        if found := await execute(self.url, 'KEYS', f'{place}:*'):
            await execute(self.url, 'DEL', *found)


class TestFaults(ServerFaults):
    def make_server(self) -> Server:
        return RedisServer('--appendonly', 'yes', '--appendfsync', 'always')

    @pytest.fixture
    def url(self, redis_url: str) -> str:
        return f'{redis_url}?prefix={new_name()}:'

    @contextlib.asynccontextmanager
    async def held_up(self, url: str) -> AsyncGenerator[None]:
        await execute(url, 'CLIENT', 'PAUSE', 60_000, 'WRITE')
        try:
            yield
        finally:
            await execute(url, 'CLIENT', 'UNPAUSE')

    async def damage(self, url: str, seq: int, line: str | None) -> None:
        key = f'{url.partition("?prefix=")[2]}lines:{RUN}'
        await execute(url, 'LSET', key, seq - 1, 'gone' if line is None else line)
        if line is None:
            await execute(url, 'LREM', key, 1, 'gone')


@pytest.fixture
def prefix() -> str:
    return f'{new_name()}:'


@pytest_asyncio.fixture
async def store(redis_url: str, prefix: str) -> AsyncIterator[RedisStore]:
    store = RedisStore(redis_url, prefix=prefix)
    yield store
    await store.close()


@pytest.fixture
def own() -> Iterator[RedisServer]:
    """A server whose settings a test may change."""
    server = RedisServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


# The layout -----------------------------------------------------------------------------------------------------------


async def test_the_journal_of_the_first_version_is_read(own: RedisServer) -> None:
    to_redis(own.url, json.loads((VERSIONS / '1' / 'redis.json').read_text()))
    store = RedisStore(own.url)
    await assert_is_sample(store)
    await store.close()


@pytest.mark.parametrize('version', ['2', 'x', ''])
async def test_a_layout_of_a_newer_version_is_refused(
    redis_url: str, prefix: str, store: RedisStore, version: str
) -> None:
    await store.create(RunInfo(run=RUN))
    await execute(redis_url, 'SET', f'{prefix}version', version)
    other = RedisStore(redis_url, prefix=prefix)
    for _ in range(2):
        with pytest.raises(JournalError, match=f'version {version}, this one reads 1'):
            await other.info(RUN)


async def test_two_prefixes_of_a_server_are_apart(redis_url: str, store: RedisStore) -> None:
    await store.create(RunInfo(run=RUN))
    other = RedisStore(f'{redis_url}?prefix={new_name()}')
    assert await other.runs() == []
    with pytest.raises(RunNotFound):
        await other.info(RUN)
    await other.close()


async def test_a_deleted_run_leaves_only_the_version(redis_url: str, prefix: str, store: RedisStore) -> None:
    await store.create(RunInfo(run=RUN, user='ada'))
    lease = await store.claim(RUN, owner='me', seconds=60)
    info = RunInfo(run=RUN, user='bob')
    await store.append(RUN, records(3), epoch=lease.epoch, info=info, blobs={digest_of(b'x'): b'x'})
    assert len(await execute(redis_url, 'KEYS', f'{prefix}*')) == 6
    await store.delete(RUN)
    assert await execute(redis_url, 'KEYS', f'{prefix}*') == [f'{prefix}version'.encode()]


async def test_more_runs_than_are_read_at_once_are_listed(store: RedisStore) -> None:
    for number in range(2003):
        await store.create(RunInfo(run=f'run-{number}', created=float(number), user='ada'))
    names = [f'run-{number}' for number in reversed(range(2003))]
    assert [info.run for info in await store.runs()] == names
    assert [info.run for info in await store.runs(user='ada')] == names


# The server -----------------------------------------------------------------------------------------------------------


async def test_a_server_that_forgot_the_scripts_is_given_them_again(redis_url: str, store: RedisStore) -> None:
    await store.create(RunInfo(run=RUN))
    await execute(redis_url, 'SCRIPT', 'FLUSH')
    lease = await store.claim(RUN, owner='me', seconds=60)
    await store.append(RUN, records(1), epoch=lease.epoch)
    assert await store.load(RUN) == records(1)


async def test_a_connection_that_an_operator_ends_is_made_again(own: RedisServer) -> None:
    store = RedisStore(own.url)
    await store.create(RunInfo(run=RUN))
    await execute(own.url, 'CLIENT', 'KILL', 'TYPE', 'normal')
    with contextlib.suppress(StoreUnavailable):  # or it is noticed in time
        await store.info(RUN)
    assert (await store.info(RUN)).run == RUN
    await store.close()


async def test_a_server_without_memory_is_named_and_nothing_is_half_done(own: RedisServer) -> None:
    store = RedisStore(own.url)
    await store.create(RunInfo(run=RUN))
    lease = await store.claim(RUN, owner='me', seconds=60)
    await execute(own.url, 'CONFIG', 'SET', 'maxmemory', '1')
    with pytest.raises(StoreUnavailable, match='out of memory') as caught:
        await store.append(RUN, records(2), epoch=lease.epoch, blobs={digest_of(b'x'): b'x'})
    assert not caught.value.passing
    assert await store.load(RUN) == []
    await execute(own.url, 'CONFIG', 'SET', 'maxmemory', '0')
    await store.append(RUN, records(2), epoch=lease.epoch)
    assert await store.load(RUN) == records(2)
    await store.close()


async def test_a_read_only_replica_is_named(own: RedisServer) -> None:
    store = RedisStore(own.url)
    await store.create(RunInfo(run=RUN))
    lease = await store.claim(RUN, owner='me', seconds=60)
    await execute(own.url, 'REPLICAOF', '127.0.0.1', '1')
    with pytest.raises(StoreUnavailable, match='read-only replica') as caught:
        await store.append(RUN, records(1), epoch=lease.epoch)
    assert caught.value.passing  # another may be the first server soon
    assert await store.load(RUN) == []
    await execute(own.url, 'REPLICAOF', 'NO', 'ONE')
    await store.append(RUN, records(1), epoch=lease.epoch)
    await store.close()


async def test_settings_that_put_runs_at_risk_are_named(own: RedisServer) -> None:
    store = RedisStore(own.url)
    assert [warning.rpartition('set ')[2] for warning in await store.warnings()] == ['`appendonly yes`']
    await execute(own.url, 'CONFIG', 'SET', 'maxmemory', '100mb')
    await execute(own.url, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    await execute(own.url, 'CONFIG', 'SET', 'appendonly', 'yes')
    assert [warning.rpartition('set ')[2] for warning in await store.warnings()] == ['`maxmemory-policy noeviction`']
    await execute(own.url, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    assert await store.warnings() == []
    await store.close()


# Refusals -------------------------------------------------------------------------------------------------------------


async def test_a_wrong_password_is_said_in_a_line_that_does_not_show_it() -> None:
    server = RedisServer('--requirepass', SECRET)
    try:
        server.start()
        for wrong in ('', f':wrong-{SECRET}@', 'ada:wr%40ng@'):
            with pytest.raises(StoreUnavailable, match=r'password|Authentication') as caught:
                await RedisStore(server.url.replace('unix://', f'unix://{wrong}')).runs()
            assert not caught.value.passing
            assert SECRET not in str(caught.value)
            assert not {'wr%40ng', 'wr@ng', '\n'} & set(str(caught.value).split(' '))
        store = RedisStore(server.url.replace('unix://', f'unix://:{SECRET}@'))
        assert await store.runs() == []
        await store.close()
    finally:
        server.close()


@pytest.mark.parametrize('host', ['127.0.0.1:1', 'nowhere.invalid'])
async def test_a_wrong_host_is_said_in_a_line_without_the_password(host: str) -> None:
    store = RedisStore(f'redis://:{SECRET}@{host}/0')
    with pytest.raises(StoreUnavailable, match=f'the journal at redis://{host}/0 is unavailable: ') as caught:
        await store.runs()
    assert caught.value.passing
    assert SECRET not in str(caught.value) + repr(store)
    assert '\n' not in str(caught.value)


@each_case(
    'url',
    [
        'http://localhost/',
        f'redis:{SECRET}@host',
        f'redis://:{SECRET}/more@host/0',
        f'redis://:{SECRET}?more@host/0',
        f'redis://:{SECRET}#more@host/0',
        f'redis://:a@{SECRET}@host/0',
        f'redis://:{SECRET}@[::1/0',
        f'redis://:{SECRET}@host:port/0',
        f'redis://:{SECRET}',
        f'redis://:{SECRET}@host:99999999/0',
        f'redis://:{SECRET}@host/0?socket_timeout=soon',
        f'redis://:{SECRET}@host/0?nonsense=1',
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        RedisStore(url)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'redis.asyncio', None)
    with pytest.raises(StorePackageMissing, match=r"pip install 'habilis\[redis\]'") as caught:
        RedisStore('redis://localhost')
    assert isinstance(caught.value, ImportError)


async def test_a_damaged_description_does_not_hide_other_runs(
    redis_url: str, prefix: str, store: RedisStore, caplog: pytest.LogCaptureFixture
) -> None:
    for run in (RUN, 'run-2'):
        await store.create(RunInfo(run=run))
    await execute(redis_url, 'HSET', f'{prefix}run:{RUN}', 'info', '{')
    assert [info.run for info in await store.runs()] == ['run-2']
    assert f'{RUN} is not listed' in caplog.text


async def test_a_damaged_blob_is_named(redis_url: str, prefix: str, store: RedisStore) -> None:
    await store.create(RunInfo(run=RUN))
    lease = await store.claim(RUN, owner='me', seconds=60)
    await store.append(RUN, [], epoch=lease.epoch, blobs={digest_of(b'x'): b'x'})
    await execute(redis_url, 'HSET', f'{prefix}blobs:{RUN}', digest_of(b'x'), b'y')
    with pytest.raises(CorruptRecord, match='damaged'):
        await store.blob(RUN, digest_of(b'x'))
