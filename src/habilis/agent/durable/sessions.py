"""Where a session stands: the messages and variables that its next run starts with, read from its last run."""

import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from habilis.agent.durable.approvals import add_grants
from habilis.agent.durable.attached_files import from_records, split_attached, with_data
from habilis.agent.durable.records import CELL, INPUTS_CODEC, MESSAGES, FileRecord
from habilis.agent.durable.results import read_messages, record_messages, result_without_output
from habilis.core import codec
from habilis.core.codec import Json
from habilis.core.errors import JournalError, RunBusy
from habilis.core.narrowing import fields_in
from habilis.journal import Record, RunInfo, Status, Store
from habilis.journal.index import Index, name_of, parent_of
from habilis.journal.leases.claims import has_live_owner, hold_run
from habilis.journal.lookup import value_of
from habilis.journal.runs import is_import_note
from habilis.models.contract import Message
from habilis.models.files import File
from habilis.tools.grants import CallGrant, Grants

logger = logging.getLogger('habilis.agent')

_ENDED: tuple[Status, ...] = ('done', 'stopped', 'waiting')
"""A run that failed, or whose process died, is not part of its session before it was resumed."""

_Variables = tuple[tuple[str, ...], dict[str, bytes]]
"""Names of variables, and snapshots by sandbox."""


@dataclass(frozen=True, kw_only=True)
class SessionState:
    """What the next run of a conversation starts with."""

    messages: tuple[Message, ...] = ()
    names: tuple[str, ...] | None = ()
    """The variables that code had; None if that is not known."""

    snapshots: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Their values, by sandbox, as far as they were saved."""

    files: tuple[File, ...] = ()
    """Images and files of its tasks."""

    grants: Grants = field(default_factory=Grants)
    """What a person has approved for the rest of it. The next run adds to it."""

    run: str = ''
    """Id of the run that this is the end of."""

    updated: float = 0.0
    """When that run was changed last: it may be resumed later, also by another process."""


async def read_session(store: Store, user: str, session: str, known: SessionState | None = None) -> SessionState | None:
    """The state after the last run of a session that has ended; None for a new session.

    `known` is returned as it is if nothing has changed since.
    """
    for info in await store.runs(user=user, session=session):
        if known is not None and (info.run, info.updated) == (known.run, known.updated):
            return known
        if info.kind == 'agent' and info.status in _ENDED and (info.status == 'done' or not info.parent):
            state = await _read_run(store, info)
            if state is not None:
                return state
    return None


async def note_messages(store: Store, run: str, messages: tuple[Message, ...]) -> float:
    """Record that the next run of a session starts with these messages instead of those of its last run.

    Returns when the run was changed. Raises `RunBusy` while it is being executed.
    """
    async with hold_run(store, run) as lease:
        count = len(await store.load(run))
        value: Json = {MESSAGES: record_messages(messages, ())}
        note = Record(seq=count + 1, path='', kind='noted', value=value, at=round(time.time(), 6))
        await store.append(run, [note], epoch=lease.epoch)
    return (await store.info(run)).updated


async def check_idle(store: Store, user: str, session: str) -> None:
    """Raise `RunBusy` if a run of this session is under way, here or in another process."""
    for info in await store.runs(user=user, session=session, status='running'):
        if await has_live_owner(store, info.run):
            msg = f'the conversation {session!r} is in the middle of a turn, {info.run}: wait for it'
            raise RunBusy(msg)


async def _read_run(store: Store, info: RunInfo) -> SessionState | None:
    records = await store.load(info.run)
    opened = next((record for record in records if record.kind == 'opened'), None)
    index = Index(records)
    messages = await _messages(store, info.run, records, index)
    if opened is None or messages is None or any(map(is_import_note, records)):  # a foreign run may be hostile
        return None
    names, files, approved = await _start(store, info.run, opened)
    snapshots, data = split_attached(await read_blobs(store, info.run, opened.attached))
    if (after := await cell_variables(store, info.run, index, opened.path)) is not None:
        names, snapshots = after[0], {**snapshots, **after[1]}
    return SessionState(
        messages=with_data(whole_turns(messages), data),
        names=names,
        snapshots=snapshots,
        files=from_records(files, data),
        grants=await _grants(store, info.run, index, opened.path, approved),
        run=info.run,
        updated=info.updated,
    )


async def _messages(store: Store, run: str, records: list[Record], index: Index) -> tuple[Message, ...] | None:
    """The messages at the end of a run: those of its result, or of the note about its last end without an answer."""
    read = partial(value_of, store, run)
    for record in reversed(records):
        if record.kind == 'done' and '/' not in record.path:
            return await read_messages(result_without_output(await read(record)).messages, index, read)
        note = await read(record) if record.kind == 'noted' else None
        said = note.get(MESSAGES) if isinstance(note, dict) else None
        if isinstance(said, list):
            return await read_messages(said, index, read)
    return None


async def _start(
    store: Store, run: str, opened: Record
) -> tuple[tuple[str, ...], tuple[FileRecord, ...], tuple[CallGrant, ...]]:
    """Names of the variables, the files, and what was approved before, of the start of a run."""
    with contextlib.suppress(JournalError):  # damaged: the snapshots may still be readable
        inputs = INPUTS_CODEC.read(await value_of(store, run, opened))
        return (*(inputs.names or ()), *inputs.variables), inputs.files, inputs.approved
    return (), (), ()


async def _grants(store: Store, run: str, index: Index, path: str, before: tuple[CallGrant, ...]) -> Grants:
    """What was approved before a run, and in it."""
    grants = Grants(before)
    cells = [inside for inside, _ in index.inside(path) if parent_of(inside) == path and name_of(inside) == CELL]
    for asking in (path, *cells):
        await add_grants(grants, index, partial(value_of, store, run), asking)
    return grants


async def cell_variables(store: Store, run: str, index: Index, path: str) -> _Variables | None:
    """Names and snapshots of the variables after the last cell of the agent at this path; None if it has run none."""
    ends = (inner.end for inside, inner in index.inside(path) if parent_of(inside) == path and name_of(inside) == CELL)
    cells = sorted((end for end in ends if end is not None and end.kind == 'done'), key=lambda record: record.seq)
    if not cells:
        return None
    attached: dict[str, str] = {}
    for record in cells:  # a snapshot that could not be made is left out
        attached |= record.attached
    names: tuple[str, ...] = ()
    with contextlib.suppress(JournalError, ValueError):
        names = _variables_of(await value_of(store, run, cells[-1]))
    return names, await read_blobs(store, run, attached)


def _variables_of(cell: Json) -> tuple[str, ...]:
    """The names of the variables after a recorded cell."""
    return tuple(fields_in(fields_in(codec.unpack(cell)).get('variables')))


async def read_blobs(store: Store, run: str, digests: Mapping[str, str]) -> dict[str, bytes]:
    """The blobs by name. One that is damaged is left out, and logged."""
    found: dict[str, bytes] = {}
    for name, digest in digests.items():
        try:
            found[name] = await store.blob(run, digest)
        except JournalError as error:
            logger.warning('%s is not restored: %s', name, error)
    return found


def whole_turns(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages without a last step that has function calls without answers: no provider accepts those."""
    asked = {call.id: number for number, message in enumerate(messages) for call in message.calls}
    answered = {message.call_id for message in messages if message.role == 'tool'}
    open_calls = [number for call, number in asked.items() if call not in answered]
    return messages[: min(open_calls)] if open_calls else messages
