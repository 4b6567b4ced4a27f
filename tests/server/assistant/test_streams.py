"""The order of what a stream tells."""

import json
from collections.abc import AsyncIterable
from contextlib import AbstractAsyncContextManager

from starlette.requests import Request
from starlette.responses import StreamingResponse

from habilis.assistant import Session
from habilis.journal import MemoryStore, Record, RunInfo
from habilis.server.assistant.conversations import Conversations, OpenConversation
from habilis.server.assistant.streams import stream_run
from habilis.server.assistant.watching import WatchedStore, Watchers


class ReadSlowly(MemoryStore):
    """A store of which much happens while it is read: words of the model, their record, and words after it."""

    def __init__(self, watchers: Watchers) -> None:
        super().__init__()
        self._watchers = watchers
        self._seq = 0

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        if self._seq < 3:
            self._seq += 1
            self._watchers.wake('run', run, {'text': f'before {self._seq}'})
            record = Record(seq=self._seq, path='agent#1/ask#1', kind='done', value=self._seq)
            await WatchedStore(self, self._watchers).append(run, [record], epoch=0)
        found = await super().load(run, after=after)
        self._watchers.wake('run', run, {'text': f'after {self._seq}'})
        return found


async def test_what_happens_while_the_journal_is_read_is_told_in_its_place() -> None:
    watchers = Watchers()
    store = ReadSlowly(watchers)
    await store.create(RunInfo(run='r'))
    conversations = Conversations(WatchedStore(store, watchers), watchers, _open_no_session)
    scope: dict[str, object] = {
        'type': 'http',
        'path_params': {'id': 'r'},
        'owner': '',
        'query_string': b'',
        'headers': [],
    }
    response = await stream_run(conversations, Request(scope))
    assert isinstance(response, StreamingResponse)
    told = await _first(response.body_iterator, 9)
    assert told == ['before 1', 1, 'after 1', 'before 2', 2, 'after 2', 'before 3', 3, 'after 3']


def _open_no_session(user: str, session: str, view: OpenConversation) -> AbstractAsyncContextManager[Session]:
    raise NotImplementedError


async def _first(messages: AsyncIterable[str | bytes | memoryview], count: int) -> list[object]:
    told: list[object] = []
    async for message in messages:
        data = json.loads(str(message).partition('data: ')[2])
        told.append(data.get('text', data.get('seq')))
        if len(told) == count:
            break
    return told
