"""Streams of runs and of users: without a gap, whatever is stored by whom, and wherever they are cut."""

import asyncio
import contextlib
import gc
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import StreamingResponse

from habilis.assistant import Session
from habilis.journal import Record, RunInfo, Store
from habilis.journal.stores.sqlite import SqliteStore
from habilis.memory import Memory
from habilis.models.scripted import ScriptedModel
from habilis.server.assistant import streams
from habilis.server.assistant.conversations import Conversations, OpenConversation
from habilis.server.assistant.watching import MAX_WAITING, WatchedStore, Watchers
from tests.waiting import PATIENCE, until

ACTIONS = st.lists(
    st.sampled_from(['here', 'elsewhere', 'many here', 'many elsewhere', 'read', 'cut']), min_size=1, max_size=12
)


@contextlib.asynccontextmanager
async def no_session(user: str, session: str, view: OpenConversation) -> AsyncGenerator[Session]:
    raise AssertionError
    yield


class Journal:
    """A run that this process and another one write to."""

    def __init__(self, folder: Path) -> None:
        self.watchers = Watchers()
        self.elsewhere = SqliteStore(folder / 'journal.db')
        self.here = WatchedStore(SqliteStore(folder / 'journal.db'), self.watchers)
        self.conversations = Conversations(self.here, self.watchers, no_session)
        self.info = RunInfo(run='r', user='ann', status='running', created=1, updated=1)
        self.seq = 0

    async def open(self) -> None:
        await self.here.create(self.info)
        self._lease = await self.here.claim('r', owner='x', seconds=600)

    async def write(self, store: Store, count: int = 1) -> None:
        for _ in range(count):
            self.seq += 1
            record = Record(seq=self.seq, path='', kind='noted', value=self.seq, at=time.time())
            await store.append('r', [record], epoch=self._lease.epoch)


def request(after: object) -> Request:
    query = '' if after is None else f'after={after}'
    scope: dict[str, Any] = {'type': 'http', 'path_params': {'id': 'r'}, 'owner': 'ann', 'headers': []}
    return Request({**scope, 'query_string': query.encode()})


async def told(response: object) -> AsyncIterator[tuple[str, Any]]:
    """The ids and the data of a stream."""
    assert isinstance(response, StreamingResponse)
    async for chunk in response.body_iterator:
        assert isinstance(chunk, bytes)
        for message in chunk.decode().split('\n\n'):
            fields = dict(line.split(': ', 1) for line in message.splitlines() if not line.startswith(':'))
            if 'data' in fields:
                yield fields.get('id', ''), json.loads(fields['data'])


@settings(max_examples=25, deadline=None)
@given(ACTIONS)
def test_a_run_is_told_without_a_gap_or_a_repeat(actions: list[str]) -> None:
    async def check(folder: Path) -> None:
        journal, seen = Journal(folder), list[int]()
        await journal.open()
        stream = told(await streams.stream_run(journal.conversations, request(0)))
        for action in [*actions, 'read']:
            many = MAX_WAITING + 10 if 'many' in action else 1
            if 'here' in action.split():
                await journal.write(journal.here, many)
            elif 'elsewhere' in action:
                await journal.write(journal.elsewhere, many)
            elif action == 'cut':
                stream = told(await streams.stream_run(journal.conversations, request(seen[-1] if seen else 0)))
            while action == 'read' and len(seen) < journal.seq:
                id, data = await anext(stream)
                assert id == str(data['seq'])
                seen.append(data['seq'])
        assert seen == list(range(1, journal.seq + 1))
        await journal.here.close()
        await journal.elsewhere.close()

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


async def test_what_a_client_does_not_read_is_not_kept_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kept() -> int:
        return sum(isinstance(one, Record) for one in gc.get_objects())

    monkeypatch.setattr(streams, 'SLOW_SECONDS', 0.01)
    journal = Journal(tmp_path)
    await journal.open()
    await journal.write(journal.elsewhere, 1_000)
    before = kept()
    stream = told(await streams.stream_run(journal.conversations, request(0)))
    seen = [(await anext(stream))[1]['seq']]
    await until(lambda: kept() - before < 100)
    while len(seen) < journal.seq:
        seen.append((await anext(stream))[1]['seq'])
    assert seen == list(range(1, 1_001))
    await journal.here.close()
    await journal.elsewhere.close()


async def test_a_change_that_is_found_later_than_a_newer_one_is_told(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    await journal.open()
    now = time.time()
    stream = told(await streams.stream_user(journal.conversations, request(now - 100)))
    assert (await anext(stream))[1] == {}
    await journal.here.create(replace(journal.info, run='newer', updated=now))
    id, newer = await anext(stream)
    await journal.elsewhere.create(replace(journal.info, run='older', updated=now - 1))
    again = told(await streams.stream_user(journal.conversations, request(id)))
    assert newer['run'] == 'newer'
    assert 'older' in {(await anext(again))[1].get('run') for _ in range(2)}
    await journal.here.close()
    await journal.elsewhere.close()


async def test_without_an_id_a_user_is_told_what_changes_from_now_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    await journal.open()
    stream = told(await streams.stream_user(journal.conversations, request(None)))
    id, _ = await anext(stream)
    assert abs(float(id) - time.time()) < 3600
    changing = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    await journal.here.create(replace(journal.info, run='next', updated=time.time()))
    assert (await changing)[1]['run'] == 'next'
    await journal.here.close()
    await journal.elsewhere.close()


async def test_words_of_a_reply_do_not_come_after_its_record(tmp_path: Path) -> None:
    class Slow(SqliteStore):
        async def load(self, run: str, *, after: int = 0) -> list[Record]:
            if not after:
                journal.watchers.wake('run', run, [{'text': 'before'}])
                await journal.write(journal.here)
            return await super().load(run, after=after)

    journal = Journal(tmp_path)
    await journal.open()
    slow = WatchedStore(Slow(tmp_path / 'journal.db'), journal.watchers)
    stream = told(await streams.stream_run(Conversations(slow, journal.watchers, no_session), request(0)))
    assert (await anext(stream))[1]['seq'] == 1
    journal.watchers.wake('run', 'r', [{'text': 'after'}])
    await journal.write(journal.here)
    assert [(await anext(stream))[1].get(name) for name in ('text', 'seq')] == ['after', 2]
    await slow.close()
    await journal.here.close()
    await journal.elsewhere.close()


async def test_a_conversation_that_opens_slowly_delays_no_other(tmp_path: Path) -> None:
    quick_is_open = asyncio.Event()

    @contextlib.asynccontextmanager
    async def open_session(user: str, session: str, view: OpenConversation) -> AsyncGenerator[Session]:
        if session == 'slow':
            await asyncio.wait_for(quick_is_open.wait(), PATIENCE)
        async with (
            Memory(tmp_path / 'memory.db', user=user) as memory,
            Session(ScriptedModel([]), memory=memory, journal=store, id=session, view=view) as opened,
        ):
            yield opened

    watchers = Watchers()
    store = WatchedStore(SqliteStore(tmp_path / 'journal.db'), watchers)
    conversations = Conversations(store, watchers, open_session)
    slow = [asyncio.create_task(conversations.get('ann', 'slow')) for _ in range(2)]
    await asyncio.sleep(0)
    await conversations.get('ann', 'quick')
    quick_is_open.set()
    assert await slow[0] is await slow[1]
    await conversations.close()
    await store.close()
