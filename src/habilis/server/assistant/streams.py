"""Runs as Server-Sent Events: the records of the journal by number, and what happens between them."""

import json
import time
from collections.abc import AsyncGenerator
from dataclasses import asdict
from operator import itemgetter

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from habilis.core.codec import Json
from habilis.journal import Record, RunInfo
from habilis.journal.lookup import info_of
from habilis.server.assistant.conversations import Conversations
from habilis.server.operations import EVENTS, KEEPALIVE_SECONDS, BadRequest

POLL_SECONDS = 1.0
"""How often the journal is asked for what another process has recorded."""

NOT_SENT = frozenset({'prompt'})
"""Notes that a client asks for when it needs them."""


async def stream_run(conversations: Conversations, request: Request) -> Response:
    """The records of a run after a number, then those to come. Records have an id, what happens between them has none.

    A client that was cut off goes on from the last id, without a gap and without a repeat.
    """
    run, user = request.path_params['id'], request.scope['owner']
    await info_of(conversations.store, run, user)
    return _response(_run_events(conversations, run, int(_last_id(request))))


async def stream_user(conversations: Conversations, request: Request) -> Response:
    """The runs of the user that have changed after a time, then those that change, as they are listed."""
    return _response(_user_events(conversations, request.scope['owner'], _last_id(request)))


async def _run_events(conversations: Conversations, run: str, after: int) -> AsyncGenerator[str]:
    with conversations.watchers.watch('run', run) as watcher:
        silent_since = time.monotonic()
        while not conversations.watchers.is_closed:
            records = await conversations.store.load(run, after=after)
            after = records[-1].seq if records else after
            # What happened before a record goes out before it, whenever it is read: the record replaces it.
            messages = [(record.seq, _message('record', record_json(record), record.seq)) for record in records]
            messages += [(recorded, _message('live', live)) for recorded, live in watcher.take(after)]
            for _, message in sorted(messages, key=itemgetter(0)):
                yield message
            now = time.monotonic()
            silent_since = now if messages else silent_since
            if now - silent_since > KEEPALIVE_SECONDS:
                silent_since = now
                yield ': still here\n\n'
            await watcher.wait(POLL_SECONDS)


async def _user_events(conversations: Conversations, user: str, after: float) -> AsyncGenerator[str]:
    with conversations.watchers.watch('user', user) as watcher:
        yield ': here\n\n'
        while not conversations.watchers.is_closed:
            changed = [info for info in await conversations.store.runs(user=user) if info.updated > after]
            for info in sorted(changed, key=lambda info: info.updated):
                after = info.updated
                yield _message('run', run_json(info), after)
            if not await watcher.wait(KEEPALIVE_SECONDS):
                yield ': still here\n\n'


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


def _message(kind: str, data: Json, id: float | None = None) -> str:
    head = '' if id is None else f'id: {id!r}\n'
    return f'{head}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n'


def _last_id(request: Request) -> float:
    """Where a client goes on: what its browser says after a cut, else what the page has asked for."""
    text = request.headers.get('last-event-id') or request.query_params.get('after') or '0'
    try:
        return float(text)
    except ValueError:
        msg = f'after={text!r} is not the id of an event'
        raise BadRequest(msg) from None


def _response(messages: AsyncGenerator[str]) -> Response:
    return StreamingResponse(messages, media_type=EVENTS, headers={'Cache-Control': 'no-store'})
