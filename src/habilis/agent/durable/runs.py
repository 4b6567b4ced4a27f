"""Create, load and resume the runs of an agent in a store."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from habilis.agent.context.output import OutputType
from habilis.agent.contract import Result
from habilis.agent.durable.attached_files import data_of, from_records, split_attached, with_data
from habilis.agent.durable.recorder import Recorder
from habilis.agent.durable.records import (
    ASK,
    INPUTS_CODEC,
    NO_STOP,
    PROMPT,
    RESUMED,
    RESUMED_CODEC,
    VALIDATED,
    Inputs,
    Resumed,
)
from habilis.agent.durable.results import RecordedResult, ResultCodec
from habilis.agent.durable.sessions import SessionState, read_blobs, read_session
from habilis.agent.durable.trajectory import TASK, read_result
from habilis.core.background_loop import run_blocking, wait_for_result
from habilis.core.errors import AgentError, ContextOverflow
from habilis.core.programs import program_of
from habilis.journal import Journal, OnChange, Record, RunInfo, Scope, Store, current_scope
from habilis.journal.index import name_of, parent_of
from habilis.journal.runs import is_import_note
from habilis.journal.scope import first_path
from habilis.journal.stores.urls import OFF
from habilis.models.files import File
from habilis.tools.attempts import on_thread
from habilis.tools.grants import Grants

T = TypeVar('T')

JournalChoice = str | Path | Store | None
"""`off`, a file (`runs.db`), a folder (`runs/`), a URL (`postgresql://…`, `redis://…`), a store; None: the setting."""

TITLE_LENGTH = 100
"""Maximum characters of the task in a list of runs."""


class NamedAgent(Protocol):
    """The agent that a run belongs to."""

    @property
    def name(self) -> str:
        """Its name, which is that of the run too."""
        ...


@dataclass(frozen=True, kw_only=True)
class LoadedRun:
    """A run loaded from a store."""

    recorder: Recorder
    inputs: Inputs
    prompted: bool
    """Whether its prompt was recorded."""

    done: Record | None
    """The record of its result, if it has one."""

    stopped: str | None
    """How it ended last; None if its process died."""

    start: SessionState
    """The conversation that it continues."""

    files: tuple[File, ...]
    """Images and files of its task."""

    async def result(self, output: OutputType) -> Result[object]:
        """The recorded result. Marks the run as done, and releases it."""
        assert self.done is not None
        journal = self.recorder.journal
        written = await journal.value_of(self.done)
        recorded = await on_thread(lambda: ResultCodec(output).read(written))  # runs its validators
        result = await read_result(journal, self.done.path, recorded)
        await self.recorder.finish()
        await self.recorder.close()
        data = data_of(self.files, self.start.messages)
        return replace(result, run_id=journal.run, messages=with_data(result.messages, data))


async def nested_result(
    scope: Scope, name: str, work: Callable[[], Awaitable[RecordedResult]], output: OutputType, *, key: str, task: str
) -> Result[object]:
    """The result of a run inside another, which is a step of it: of the work, or from its record."""
    found: list[Record] = []
    recorded = await scope.step(
        name, work, key=key, codec=ResultCodec(output), opening={TASK: task}, replayed=found.append
    )
    return await read_result(scope.journal, found[0].path, recorded) if found else recorded.result


class RunStore:
    """The store of an agent's runs. Opened when it is first needed, for each event loop."""

    def __init__(self, where: JournalChoice) -> None:
        self._where = where
        self._stores: dict[asyncio.AbstractEventLoop, Store] = {}

    @property
    def is_off(self) -> bool:
        """Whether runs are not recorded."""
        return self._where == OFF

    @property
    def store(self) -> Store:
        """The store of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._stores:
            from habilis.journal.stores.urls import open_store  # imported when first needed

            self._stores[loop] = open_store(self._where)
        return self._stores[loop]

    async def create(
        self, run_id: str, agent: NamedAgent, inputs: Inputs, *, user: str, session: str, attached: Mapping[str, bytes]
    ) -> Recorder | None:
        """A recorder for a new run; None if runs are not recorded."""
        if self.is_off:
            if user or session:
                msg = 'a user or a session needs a journal; pass journal=… to the agent'
                raise AgentError(msg)
            return None
        await self._close_stale_stores()
        name, inputs = agent.name, replace(inputs, program=program_of(agent))
        info = RunInfo(run=run_id, kind='agent', name=name, title=title_of(inputs.task), user=user, session=session)
        written = INPUTS_CODEC.write(inputs)
        journal = await Journal.create(self.store, info, written, path=first_path(name), attached=attached)
        return Recorder(Scope(journal, '').below(name), top=True, task=inputs.task)

    async def load(self, run_id: str, *, user: str | None, on_change: OnChange) -> LoadedRun:
        """Load a run to resume it. Raises `RunNotFound`, `RunBusy`, `CorruptRecord`."""
        await self._close_stale_stores()
        journal = await Journal.open(self.store, run_id, user=user, on_change=on_change)
        try:
            return await self._read(journal)
        except BaseException:
            await journal.close()
            raise

    async def _read(self, journal: Journal) -> LoadedRun:
        records = journal.loaded
        opened = next((record for record in records if record.kind == 'opened'), None)
        if journal.info.kind != 'agent' or opened is None or '/' in opened.path:
            msg = f'{journal.run} is not the run of an agent, or has no record of its inputs: delete it, and start anew'
            raise AgentError(msg)
        await _drop_failure(journal, opened.path)
        scope = Scope(journal, '').below(journal.info.name)
        entry = journal.index.find(scope.path)
        inputs = INPUTS_CODEC.read(await journal.value_of(opened))
        snapshots, data = split_attached(await read_blobs(journal.store, journal.run, opened.attached))
        files, earlier = ([one for one in inputs.files if one.is_earlier is is_earlier] for is_earlier in (False, True))
        notes = [note for record in records if (note := _resumed(record, scope.path)) is not None]
        return LoadedRun(
            recorder=Recorder(scope, top=True, task=inputs.task, notes=notes, no_stop=_no_stop(records, scope.path)),
            inputs=inputs,
            prompted=bool(inputs.asked) or any(_is_prompt(record, scope.path) for record in records),
            done=entry.end if entry is not None else None,
            stopped=_last_end(records) if journal.info.status in {'stopped', 'failed', 'waiting'} else None,
            start=SessionState(
                messages=with_data(inputs.history, data),
                names=inputs.names,
                snapshots=snapshots,
                files=from_records(earlier, data),
                grants=Grants(() if any(map(is_import_note, records)) else inputs.approved),
            ),
            files=from_records(files, data),
        )

    async def session_state(self, user: str, session: str, known: SessionState | None = None) -> SessionState:
        """Where a session stands; `known`, if that has not changed since."""
        if self.is_off or not session:
            return known or SessionState()
        return await read_session(self.store, user, session, known) or SessionState()

    async def _close_stale_stores(self) -> None:
        """Close stores of event loops that have ended: repeated `asyncio.run` makes many."""
        for loop in [loop for loop in self._stores if loop.is_closed()]:
            store = self._stores.pop(loop)
            if store is not self._where:
                with contextlib.suppress(Exception):  # its connection ended with its loop
                    await store.close()

    async def close(self) -> None:
        """Close the stores that were opened here. One that was passed in stays open."""
        stores, self._stores = self._stores, {}
        for store in stores.values():
            if store is not self._where:
                await store.close()


def wait_here(work: Coroutine[object, object, T]) -> T:
    """Wait for a run on a thread. In a tool of another run it uses the event loop of that run."""
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


def title_of(task: str) -> str:
    """A task in one line, for a list of runs."""
    return ' '.join(task.split())[:TITLE_LENGTH]


def _resumed(record: Record, path: str) -> Resumed | None:
    if record.kind != 'noted' or record.path != path or not isinstance(record.value, dict):
        return None
    written = record.value.get(RESUMED)
    return None if written is None else RESUMED_CODEC.read(written)


def _is_prompt(record: Record, path: str) -> bool:
    is_note = record.kind == 'noted' and record.path == path
    return is_note and (bool(record.blob) or (isinstance(record.value, dict) and PROMPT in record.value))


def _no_stop(records: Sequence[Record], path: str) -> list[int]:
    notes = [record.value for record in records if record.kind == 'noted' and record.path == path]
    steps = [note.get(NO_STOP) for note in notes if isinstance(note, dict)]
    return [step for step in steps if isinstance(step, int)]


async def _drop_failure(journal: Journal, path: str) -> None:
    """Remove a failed request or output validator from the record, so that it is made or called again."""
    ends = [(end.seq, inner) for inner, entry in journal.index.inside(path) if (end := entry.end) is not None]
    _, last = max(ends, default=(0, ''))
    entry = journal.index.find(last)
    end = entry.end if entry is not None and parent_of(last) == path and name_of(last) in {ASK, VALIDATED} else None
    value = end.value if end is not None and end.kind == 'failed' else None
    if isinstance(value, dict) and value.get('type') != ContextOverflow.__name__:  # the run continued after it
        await journal.rewind(path, [last])


def _last_end(records: Sequence[Record]) -> str | None:
    """How the run ended; None if it was resumed since, and has not ended."""
    for record in reversed(records):
        value = record.value if isinstance(record.value, dict) else {}
        if record.kind == 'ended':
            inner = value.get('value')
            return str(inner.get('ended', 'stopped')) if isinstance(inner, dict) else 'stopped'
        if record.kind != 'answered' and not (record.kind == 'noted' and RESUMED not in value):
            return None
    return None
