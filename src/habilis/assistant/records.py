"""Conversations in the journal: their ids, what is recorded with each turn, and where a conversation stands."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from habilis.agent.contract import Result
from habilis.agent.durable.records import Inputs
from habilis.agent.durable.sessions import check_idle
from habilis.agent.durable.trajectory import read_trajectories
from habilis.agent.durable.undo import TakenBack
from habilis.assistant.contract import Unfinished
from habilis.assistant.project_instructions import repository_of
from habilis.core.errors import JournalError, RememberError, RunNotFound
from habilis.core.integers import safe_repr
from habilis.core.narrowing import fields_in, items_in
from habilis.journal import RunInfo, Store
from habilis.journal.lookup import info_of
from habilis.journal.runs import read_run
from habilis.memory import Memory, Turn

META_KEY = 'habilis chat'
"""Key of the `TurnNote` in the metadata of a run."""


def sessions_of(folder: str) -> str:
    """How the ids of conversations start that began in a folder."""
    return f'chat-{hashlib.sha256(os.path.realpath(folder).encode()).hexdigest()[:6]}-'


def new_session() -> str:
    """Id for a conversation that begins in the current folder."""
    return f'{sessions_of(os.getcwd())}{secrets.token_hex(3)}'


def project_of(folder: str) -> str:
    """The project that the work in a folder belongs to: its repository, or the folder."""
    path = Path(os.path.realpath(folder))
    return str(repository_of(path) or path)


@dataclass(frozen=True, kw_only=True)
class TurnNote:
    """What is recorded with the run of a turn."""

    turn: str = ''
    """Id of the message in the memory."""

    said: str = ''
    """The message, if the task has more than it, such as the text of files."""

    why: Sequence[str] = ()
    """Why the memory has given what it gave to this message, one for each line of it."""

    earlier: Sequence[str] = ()
    """Ids of the last turns of the conversations that this one is a copy of, the oldest first."""

    mode: str = ''
    """The permission mode; empty for the usual one."""

    @classmethod
    def from_meta(cls, meta: Mapping[str, object]) -> 'TurnNote':
        """The note of a run; an empty one if it has none."""
        note = fields_in(meta.get(META_KEY))
        return cls(
            turn=str(note.get('turn') or ''),
            said=str(note.get('said') or ''),
            why=_texts(note.get('why')),
            earlier=_texts(note.get('earlier')),
            mode=str(note.get('mode') or ''),
        )


def _texts(found: object) -> list[str]:
    return [str(one) for one in items_in(found)]


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A conversation in the journal."""

    session: str
    run: str
    """Id of its last run."""

    inputs: Inputs | None
    note: TurnNote
    """That of its last run."""

    meta: Mapping[str, object] = field(default_factory=dict[str, object])
    """That of its last run; empty if the run was imported, as a stranger may have written it."""

    unfinished: Unfinished | None = None
    cut_short: Literal['interrupted', 'approval'] | None = None
    """Why the last turn should be finished at once: its process died, or a call of it waits for an approval."""


async def find_recorded(store: Store, user: str, session: str) -> Recorded | None:
    """The conversation of this id; None if it has no turn yet. Raises `RunBusy` if it is in the middle of one."""
    found = await store.runs(user=user, session=session)
    return await _read(store, user, found[0]) if found else None


async def find_newest(store: Store, user: str, folder: str) -> Recorded | None:
    """The newest conversation that began in a folder; likewise."""
    start = sessions_of(folder)
    found = [run for run in await store.runs(user=user) if run.session.startswith(start)]
    return await _read(store, user, found[0]) if found else None


async def turns_with_earlier(store: Store, user: str, session: str) -> list[RunInfo]:
    """The runs of a conversation, newest first; if it was forked from a turn of another, also the turns before that."""
    found = await store.runs(user=user, session=session)
    first, seen = found[-1] if found else None, {session}
    while first is not None and first.parent:
        try:
            parent = await info_of(store, first.parent, user)
        except RunNotFound:  # deleted
            break
        if parent.session in seen:  # records of strangers may say anything
            break
        seen.add(parent.session)
        earlier = [one for one in await store.runs(user=user, session=parent.session) if one.created < parent.created]
        found += earlier
        first = earlier[-1] if earlier else parent
    return found


async def _read(store: Store, user: str, last: RunInfo) -> Recorded:
    await check_idle(store, user, last.session)
    view = await read_run(store, last.run, user=user)
    agents = await read_trajectories(view)
    inputs = agents[0].inputs if agents else None
    note = TurnNote.from_meta(inputs.meta if inputs is not None else {})
    note = replace(note, mode='') if view.imported else note  # a stranger must not choose it
    ended = view.ended.get('ended')
    is_unfinished = view.state in ('interrupted', 'failed') or (
        view.state in ('stopped', 'waiting') and ended in (None, 'approval', 'forked')
    )
    waits = is_unfinished and ended == 'approval'
    said = note.said or ('' if inputs is None else inputs.task)
    return Recorded(
        session=last.session,
        run=last.run,
        inputs=inputs,
        note=note,
        meta={} if inputs is None or view.imported else inputs.meta,
        unfinished=Unfinished(run=last.run, message=said) if is_unfinished else None,
        cut_short='interrupted' if view.state == 'interrupted' else 'approval' if waits else None,
    )


async def turns_of(memory: Memory, session: str, earlier: Sequence[str]) -> list[Turn]:
    """All turns of a conversation; of a copy, also those from before it was made. `earlier`: see `TurnNote`."""
    found: list[Turn] = []
    for id in earlier:
        with contextlib.suppress(RememberError):  # forgotten meanwhile
            last = await memory.get(id)
            assert isinstance(last, Turn)
            found += [turn for turn in await memory.turns(last.session) if turn.position <= last.position]
    return [*found, *await memory.turns(session)]


async def forget_turns(memory: Memory, session: str, taken: TakenBack) -> None:
    """Forget what the memory has of a turn that was taken back, and of those after it."""
    first = TurnNote.from_meta(taken.meta).turn
    ids = [turn.id for turn in await memory.turns(session)]
    if first in ids:
        await memory.forget(*ids[ids.index(first) :])


def last_words(result: Result[Any]) -> str:
    """What the assistant said last: the answer, or a question."""
    if result.ended == 'answer':
        return result.output if isinstance(result.output, str) else safe_repr(result.output)
    return result.question or ''


def not_recorded(session: str) -> JournalError:
    """The error for a conversation that is not in the journal."""
    return JournalError(f'no such conversation: {session}; `habilis sessions list` lists all')
