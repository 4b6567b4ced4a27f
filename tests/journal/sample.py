"""The runs that `versions/N` holds as each store wrote them. What is there must be read for ever, so it never changes.

For a new version, make its files on a machine with the servers: `python -m tests.journal.sample 2`.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from habilis.journal.contract import Record, RunInfo, Store
from habilis.journal.encoding import digest_of

VERSIONS = Path(__file__).parent / 'versions'

BLOB = bytes(range(256)) * 4
OLD = RunInfo(
    run='run-old',
    status='waiting',
    kind='flow',
    name='shop:order',
    title='naïve 日本語 \U0001f9ea \x00 \udcff',
    user='ada',
    session='s-1',
    parent='run-0',
    error='no',
    created=1700000000.25,
    updated=1700000001.5,
)
STRANGE = RunInfo(run='a/ü\x00"\\' + 'n' * 600, user='o\x00"\\', created=1600000000.0)
RECORDS = (
    Record(seq=1, path='', kind='opened', key='k', value={'a': [1, -2.5, None, True, '\x00\udcff']}, at=1700000000.0),
    Record(seq=2, path='order#1/~1/pay#1', kind='done', blob=digest_of(BLOB), at=1700000000.125),
    Record(seq=3, path='order#1', kind='asked', attached={'state': digest_of(BLOB)}, at=1700000001.0),
    Record(seq=4, path='', kind='noted', value=2**70),
)


async def fill(store: Store) -> None:
    """Write the sample."""
    for info in (STRANGE, RunInfo(run=OLD.run, created=OLD.created)):
        assert await store.create(info)
        await store.claim(info.run, owner='first', seconds=60)
        lease = await store.claim(info.run, owner='o\x00"\\ü', seconds=60, over=1)
        if info.run == OLD.run:
            await store.append(info.run, RECORDS[:1], epoch=lease.epoch)
            await store.append(
                info.run, RECORDS[1:], epoch=lease.epoch, info=OLD, blobs={digest_of(BLOB): BLOB, digest_of(b''): b''}
            )
        await store.release(info.run, epoch=lease.epoch)


async def assert_is_sample(store: Store) -> None:
    """It is all there, and can be worked with."""
    assert await store.runs() == [OLD, STRANGE]
    assert await store.runs(user='ada', session='s-1', status='waiting') == [OLD]
    assert await store.runs(user=STRANGE.user) == [STRANGE]
    assert await store.load(OLD.run) == list(RECORDS)
    assert await store.load(STRANGE.run) == []
    assert await store.blob(OLD.run, digest_of(BLOB)) == BLOB
    assert await store.blob(OLD.run, digest_of(b'')) == b''
    lease = await store.lease(OLD.run)
    assert (lease.epoch, lease.owner, lease.until) == (2, 'o\x00"\\ü', 0)
    lease = await store.claim(OLD.run, owner='me', seconds=60)
    assert lease.epoch == 3
    await store.append(OLD.run, [Record(seq=5, path='', kind='ended')], epoch=lease.epoch, info=OLD)
    assert [record.seq for record in await store.load(OLD.run, after=3)] == [4, 5]
    await store.delete(STRANGE.run)
    assert await store.runs() == [OLD]


def to_redis(url: str, commands: Mapping[str, Mapping[str, Any]]) -> None:
    """Have the content of `redis.json`; text is Latin-1 there, so that it can be any bytes."""
    with _redis(url) as client:
        for command, keys in commands.items():
            for key, values in keys.items():
                data = [str(value).encode('latin-1') for value in values]
                client.execute_command(command, key.encode('latin-1'), *data)


def _redis(url: str, **options: Any) -> Any:
    import redis

    return cast('Callable[..., Any]', redis.Redis.from_url)(url, **options)  # pyright: ignore[reportUnknownMemberType]


def _from_redis(url: str) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {'SET': {}, 'RPUSH': {}, 'HSET': {}, 'ZADD': {}}
    with _redis(url, decode_responses=True, encoding='latin-1') as ask:
        for key in sorted(ask.keys('*')):
            match ask.type(key):
                case 'string':
                    found['SET'][key] = [ask.get(key)]
                case 'list':
                    found['RPUSH'][key] = ask.lrange(key, 0, -1)
                case 'hash':
                    found['HSET'][key] = [part for pair in sorted(ask.hgetall(key).items()) for part in pair]
                case _:
                    pairs = ask.zrange(key, 0, -1, withscores=True)
                    found['ZADD'][key] = [str(part) for name, score in pairs for part in (score, name)]
    return found


def _from_postgres(program: str, url: str) -> str:
    options = ['--inserts', '--no-owner', '--no-privileges', '--schema=habilis']
    text = subprocess.check_output([program, *options, url], text=True)
    lines = [line for line in text.splitlines() if line and not re.match(r'--|\\|SET ', line)]
    return '\n'.join([*lines, ''])


async def _make(folder: Path) -> None:
    from habilis.journal.stores.urls import open_store
    from tests.journal.servers import PostgresServer, RedisServer, postgres_program

    folder.mkdir(exist_ok=True, parents=True)
    for server in (PostgresServer(), RedisServer()):
        try:
            server.start()
            store = open_store(server.url)
            await fill(store)
            await store.close()
            if isinstance(server, PostgresServer):
                text = _from_postgres(postgres_program('pg_dump'), server.url)
                (folder / 'postgres.sql').write_text(text, encoding='ascii')
            else:
                text = json.dumps(_from_redis(server.url), indent=1)
                (folder / 'redis.json').write_text(f'{text}\n', encoding='ascii')
        finally:
            server.close()


if __name__ == '__main__':
    asyncio.run(_make(VERSIONS / sys.argv[1]))
