"""Runs as Server-Sent Events: the records of the journal by number, and what happens between them."""

import asyncio
import json
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from habilis.core.codec import Json
from habilis.core.errors import HabilisError
from habilis.journal import Record, RunInfo
from habilis.journal.lookup import info_of
from habilis.server.assistant.conversations import Conversations, logger
from habilis.server.assistant.watching import Event
from habilis.server.operations import EVENTS, KEEPALIVE_SECONDS, BadRequest

POLL_SECONDS = 1.0
"""How often the journal is asked for what another process has recorded in a run."""

LATE_SECONDS = 2 * KEEPALIVE_SECONDS
"""How much later than others a change of a run may be found, as other processes make them too."""

RETRY = 'retry: 500\n\n'
"""A browser that was cut off comes back after so many milliseconds."""

ID = re.compile(r'[0-9]{1,15}(\.[0-9]{1,9})?')
"""The number of a record, or the seconds of a change."""

SLOW_SECONDS = 1.0
"""After so long a client that does not read is slow."""

CHUNK = 50
"""Messages that are sent at once. One by one, thousands of them take seconds."""

NOT_SENT = frozenset({'prompt'})
"""Notes that a client asks for when it needs them."""


async def stream_run(conversations: Conversations, request: Request) -> Response:
    """The records of a run after a number, then those to come. Records have an id, what happens between them has none.

    A client that was cut off goes on from the last id, without a gap and without a repeat.
    """
    run, user = request.path_params['id'], request.scope['owner']
    after = _last_id(request)
    await info_of(conversations.store, run, user)
    return _response(_run_events(conversations, run, int(after or 0)))


async def stream_user(conversations: Conversations, request: Request) -> Response:
    """The runs of the user that have changed after an id, then those that change, as they are listed.

    Without an id, those that change from now on. After a cut, the changes of the last seconds may come again.
    """
    after = _last_id(request)
    return _response(_user_events(conversations, request.scope['owner'], time.time() if after is None else after))


async def _run_events(conversations: Conversations, run: str, after: int) -> AsyncGenerator[bytes]:
    store, spoken = conversations.store, time.monotonic()
    with conversations.watchers.watch('run', run) as watcher:
        events = deque[Event](await store.load(run, after=after))
        chunk = [RETRY.encode()]
        while not conversations.watchers.is_closed:
            while events and len(chunk) < CHUNK:
                event = events.popleft()
                if not isinstance(event, Record):
                    chunk.append(_message('live', event))
                elif event.seq == after + 1:
                    after = event.seq
                    chunk.append(_message('record', record_json(event), after))
                elif event.seq > after:  # one was dropped, or another process has stored it
                    events.extendleft(reversed(await store.load(run, after=after)))
            now = time.monotonic()
            if not chunk and now - spoken > KEEPALIVE_SECONDS:
                chunk.append(b': still here\n\n')
            if chunk:
                spoken = now
                # What a client does not read is not kept for it: it is read from the journal again.
                forgetting = asyncio.get_running_loop().call_later(SLOW_SECONDS, events.clear)
                yield b''.join(chunk)
                forgetting.cancel()
                chunk = []
            if not events:
                is_told = await watcher.wait(POLL_SECONDS)
                events.extend(_news(watcher.take(), after) if is_told else await store.load(run, after=after))


def _news(events: Sequence[Event], after: int) -> Sequence[Event]:
    """What has happened after a record that was sent: what came before it is in the record."""
    sent = [number for number, event in enumerate(events, 1) if isinstance(event, Record) and event.seq <= after]
    return events[sent[-1] :] if sent else events


async def _user_events(conversations: Conversations, user: str, after: float) -> AsyncGenerator[bytes]:
    store, sent = conversations.store, dict[str, float]()
    with conversations.watchers.watch('user', user) as watcher:
        yield RETRY.encode() + _message('here', {}, after)
        changed: Sequence[Event] = await store.runs(user=user)
        while not conversations.watchers.is_closed:
            known = [info for info in changed if isinstance(info, RunInfo) and info.updated > after - LATE_SECONDS]
            for info in sorted(known, key=lambda info: info.updated):
                if sent.get(info.run) != info.updated:
                    sent[info.run] = info.updated
                    after = max(after, info.updated)
                    yield _message('run', run_json(info), after)
            sent = {run: updated for run, updated in sent.items() if updated > after - LATE_SECONDS}
            if await watcher.wait(KEEPALIVE_SECONDS):
                changed = watcher.take()
            else:
                changed = await store.runs(user=user)
                yield b': still here\n\n'


def record_json(record: Record) -> dict[str, Json]:
    """A record for a client. A value that is a blob is fetched by its digest."""
    value = record.value
    if record.kind == 'noted' and isinstance(value, dict):
        value = {name: noted for name, noted in value.items() if name not in NOT_SENT}
    known: dict[str, Json] = {'seq': record.seq, 'path': record.path, 'kind': record.kind, 'at': record.at}
    known |= {'value': value} if not record.blob else {'blob': record.blob}
    if record.attached:
        known['attached'] = dict(record.attached)
    return known


def run_json(info: RunInfo) -> dict[str, Json]:
    """A run as it is listed."""
    return asdict(info)


def _message(kind: str, data: object, id: float | None = None) -> bytes:
    head = '' if id is None else f'id: {id!r}\n'
    # Code may print text that is not valid Unicode.
    return f'{head}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n'.encode(errors='replace')


def _last_id(request: Request) -> float | None:
    """Where a client goes on: what its browser says after a cut, else what the page has asked for."""
    text = request.headers.get('last-event-id') or request.query_params.get('after')
    if not text:
        return None
    if not ID.fullmatch(text):
        msg = f'after={text[:40]!r} is not the id of an event'
        raise BadRequest(msg)
    return float(text)


async def _until_it_fails(messages: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The messages up to an error, such as a run that is deleted. A client that comes back is told what it is."""
    try:
        async for message in messages:
            yield message
    except HabilisError as error:
        logger.warning('a stream has ended: %s', error)


def _response(messages: AsyncGenerator[bytes]) -> Response:
    return StreamingResponse(_until_it_fails(messages), media_type=EVENTS, headers={'Cache-Control': 'no-store'})
