"""The runs of an agent in a store: begun, found again, and gone on with."""

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from habilis.agent.contract import RunLimits
from habilis.agent.recording import ASK, NO_STOP, Recorder, Resumed
from habilis.agent.records import DataCodec, messages_of
from habilis.core.background_loop import run_blocking, wait_for_result
from habilis.core.errors import AgentError, ContextOverflow
from habilis.journal import Journal, OnChange, Record, RunInfo, Scope, Store, current_scope
from habilis.journal.access import value_of
from habilis.journal.index import name_of, parent_of
from habilis.journal.opening import OFF
from habilis.models.contract import Message

T = TypeVar('T')

JournalChoice = str | Path | Store | None
"""`off`, a file (`runs.db`), a folder (`runs/`), an address (`postgresql://…`, `redis://…`), a store; None: as set."""

TITLE = 100
"""Letters of the task in a list of runs."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a run was begun with."""

    task: str
    system: str = ''
    """The system prompt, for those who read the record; a resumed run makes its own."""

    model: str = ''
    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    artifacts: Mapping[str, str] = field(default_factory=dict[str, str])
    history: tuple[Message, ...] = ()
    limits: RunLimits = field(default_factory=RunLimits)
    asked: str = ''
    """The first message as the model got it, for readers too."""

    meta: Mapping[str, object] = field(default_factory=dict[str, object])
    """What whoever began the run wants to know when it is resumed."""


INPUTS = DataCodec(Inputs, what='what a run was begun with')


@dataclass(frozen=True, kw_only=True)
class Found:
    """A run that was found again."""

    recorder: Recorder
    inputs: Inputs
    done: Record | None
    """The record of its result, if it has one."""

    stopped: str | None
    """How it ended the last time; None if its process died."""


class Durable:
    """Where an agent keeps its runs. Opened when it is first needed, for each event loop."""

    def __init__(self, where: JournalChoice) -> None:
        self._where = where
        self._stores: dict[asyncio.AbstractEventLoop, Store] = {}

    @property
    def off(self) -> bool:
        """Whether runs are not kept."""
        return self._where == OFF

    @property
    def store(self) -> Store:
        """For the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._stores:
            from habilis.journal.opening import open_store  # stores are loaded when they are needed

            self._stores[loop] = open_store(self._where)
        return self._stores[loop]

    async def begin(self, run_id: str, name: str, inputs: Inputs, *, user: str, session: str) -> Recorder | None:
        """A new run; None if runs are not kept."""
        if self.off:
            if user or session:
                msg = 'a user or a session needs a journal; pass journal=… to the agent'
                raise AgentError(msg)
            return None
        await self._leave_other_loops()
        title = ' '.join(inputs.task.split())[:TITLE]
        info = RunInfo(run=run_id, kind='agent', name=name, title=title, user=user, session=session)
        journal = await Journal.create(self.store, info)
        return Recorder(Scope(journal, '').below(name), top=True, task=inputs.task)

    async def find(self, run_id: str, *, user: str | None, on_change: OnChange) -> Found:
        """A run to go on with. Raises `RunNotFound`, `RunBusy`, `CorruptRecord`."""
        await self._leave_other_loops()
        journal = await Journal.open(self.store, run_id, user=user, on_change=on_change)
        try:
            return await self._found(journal)
        except BaseException:
            await journal.close()
            raise

    async def _found(self, journal: Journal) -> Found:
        records = journal.loaded
        opened = next((record for record in records if record.kind == 'opened'), None)
        if journal.info.kind != 'agent' or opened is None or '/' in opened.path:
            msg = f'{journal.run} is not the run of an agent, or was ended before it began'
            raise AgentError(msg)
        await _drop_failure(journal, opened.path)
        scope = Scope(journal, '').below(journal.info.name)
        entry = journal.index.find(scope.path)
        inputs = INPUTS.read(await journal.value_of(opened))
        notes = [note for record in records if (note := _resumed(record, scope.path)) is not None]
        return Found(
            recorder=Recorder(scope, top=True, task=inputs.task, notes=notes, no_stop=_no_stop(records, scope.path)),
            inputs=inputs,
            done=entry.end if entry is not None else None,
            stopped=_how(records) if journal.info.status in {'stopped', 'failed', 'waiting'} else None,
        )

    async def last_messages(self, user: str, session: str) -> tuple[Message, ...]:
        """The conversation of a session so far."""
        if self.off:
            return ()
        for info in await self.store.runs(user=user, session=session, status='done'):
            if info.kind == 'agent':
                records = await self.store.load(info.run)
                done = next((record for record in reversed(records) if record.kind == 'done'), None)
                if done is not None:
                    return messages_of(await value_of(self.store, info.run, done))
        return ()

    async def _leave_other_loops(self) -> None:
        """Close stores of event loops that have ended: whoever calls `asyncio.run` often makes many."""
        for loop in [loop for loop in self._stores if loop.is_closed()]:
            store = self._stores.pop(loop)
            if store is not self._where:
                with contextlib.suppress(Exception):  # a connection that belonged to the loop is gone with it
                    await store.close()

    async def close(self) -> None:
        """Close the stores that were opened here. One that was given stays open."""
        stores, self._stores = self._stores, {}
        for store in stores.values():
            if store is not self._where:
                await store.close()


def wait_here(work: Coroutine[Any, Any, T]) -> T:
    """Wait for a run on a thread. In a tool of another run it is part of that, so it goes to the event loop of that."""
    scope, running = current_scope(), asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]
    loop = None if scope is None else scope.journal.loop
    if loop is None or loop is running or not loop.is_running():
        return run_blocking(work)
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return wait_for_result(future)
    except BaseException:
        future.cancel()
        raise


def _resumed(record: Record, path: str) -> Resumed | None:
    if record.kind != 'noted' or record.path != path or not isinstance(record.value, dict):
        return None
    written = record.value.get('resumed')
    return None if written is None else DataCodec(Resumed, what='a note').read(written)


def _no_stop(records: Sequence[Record], path: str) -> list[int]:
    notes = [record.value for record in records if record.kind == 'noted' and record.path == path]
    steps = [note.get(NO_STOP) for note in notes if isinstance(note, dict)]
    return [step for step in steps if isinstance(step, int)]


async def _drop_failure(journal: Journal, path: str) -> None:
    """A model that failed is asked again, also if the process died before the run could be said to have failed."""
    asks = [(end.seq, found) for found, entry in journal.index.inside(path) if (end := entry.end) is not None]
    _, last = max(asks, default=(0, ''))
    entry = journal.index.find(last)
    end = entry.end if entry is not None and parent_of(last) == path and name_of(last) == ASK else None
    value = end.value if end is not None and end.kind == 'failed' else None
    if isinstance(value, dict) and value.get('type') != ContextOverflow.__name__:  # after which the run has gone on
        await journal.rewind(path, [last])


def _how(records: Sequence[Record]) -> str | None:
    """How the run ended; None if it has gone on since, and not to an end."""
    for record in reversed(records):
        value = record.value if isinstance(record.value, dict) else {}
        if record.kind == 'ended':
            inner = value.get('value')
            return str(inner.get('ended', 'stopped')) if isinstance(inner, dict) else 'stopped'
        if record.kind != 'answered' and not (record.kind == 'noted' and 'resumed' not in value):
            return None
    return None
