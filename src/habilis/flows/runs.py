"""Runs of a flow: create, drive, resume and reset them. The outermost flow owns the journal of its run."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar, cast

from habilis.core.codec import Json
from habilis.core.errors import JournalError, LeaseLost, RunBusy, RunChanged, StoreUnavailable
from habilis.core.narrowing import is_group, json_object
from habilis.core.programs import MAIN, importable_name
from habilis.flows.contract import FlowPaused, Question
from habilis.flows.execution import run_body
from habilis.flows.recorded import RecordedFunction
from habilis.flows.stores import StoreHandle, store_handle
from habilis.flows.tasks import cancel_tasks, uncancelled
from habilis.journal import Journal, OnChange, Paused, RunInfo, Scope, Status, Store
from habilis.journal.copies import new_run_id
from habilis.journal.failures import failed_paths, message_of
from habilis.journal.index import Index
from habilis.journal.lookup import info_of, value_of

R = TypeVar('R')
_MAX_ERROR_LENGTH = 500

PROGRAM = 'program'
"""Field of the first record of a run: the flow of a script, as `module:name`."""

Check = Callable[[Journal], Awaitable[None]]
"""Checks a run after it was claimed and before anything runs."""


class ActiveRun:
    """The journal of a run that this process executes, and its store."""

    def __init__(
        self, journal: Journal, handle: StoreHandle, *, interrupted: Status = 'stopped', check: Check | None = None
    ) -> None:
        self.journal = journal
        self.check = check
        self._handle = handle
        self._interrupted: Status = interrupted
        """The status of the run if its task is cancelled."""

    async def close(self) -> None:
        """Release the run and its store."""
        await self.journal.close()
        await self._handle.close()

    async def end(self, error: BaseException | None) -> None:
        """Record how the run ended, if the journal can be written."""
        journal = self.journal
        try:
            if error is None:
                await journal.end('done')
            elif _only(error, Paused):
                await journal.end('waiting')
            elif _only(error, (asyncio.CancelledError, Paused, KeyboardInterrupt, SystemExit)):
                await journal.end(self._interrupted)
            elif not isinstance(error, (LeaseLost, RunBusy, StoreUnavailable)):
                journal.ended = type(error).__name__
                text = f'{journal.ended}: {message_of(error)}'[:_MAX_ERROR_LENGTH]
                await journal.end('failed', failed=failed_paths(error), error=text)
        except JournalError:
            if error is None:
                raise  # otherwise the caller gets the error that ended the run


def _only(error: BaseException, kinds: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
    if is_group(error):
        return all(_only(inner, kinds) for inner in error.exceptions)
    return isinstance(error, kinds)


# Create and run -------------------------------------------------------------------------------------------------------


def new_info(
    flow: RecordedFunction[..., object], bound: inspect.BoundArguments, *, title: str = '', **more: str
) -> RunInfo:
    """The info of a new run of a flow."""
    return RunInfo(kind='flow', name=flow.target, title=title or flow.inputs.title(bound), **more)  # pyright: ignore[reportArgumentType]


def recorded_arguments(flow: RecordedFunction[..., object], bound: inspect.BoundArguments) -> Json:
    """The value of the first record of a run. Raises `FlowArgumentsError` if the arguments cannot be recorded."""
    written: dict[str, Json] = {'flow': flow.name, 'inputs': cast('Json', flow.inputs.write(bound))}
    module, _, name = flow.target.partition(':')
    place = importable_name(MAIN) if module == MAIN else ''  # the info has the name of any other module
    return {**written, PROGRAM: f'{place}:{name}'} if place else written


async def create(
    flow: RecordedFunction[..., object],
    bound: inspect.BoundArguments,
    *,
    journal: Store | str | None = None,
    user: str = '',
    session: str = '',
    run_id: str | None = None,
    title: str = '',
) -> ActiveRun:
    """Create a run and record its arguments."""
    first = recorded_arguments(flow, bound)
    handle = await store_handle(journal)
    try:
        info = new_info(flow, bound, title=title, run=run_id or new_run_id(), user=user, session=session)
        return ActiveRun(await Journal.create(handle.store, info, first), handle)
    except BaseException:
        await handle.close()
        raise


async def drive(flow: RecordedFunction[..., R], bound: inspect.BoundArguments | None, active: ActiveRun) -> R:
    """Run the flow until it returns, fails, pauses or is cancelled. Without `bound`, use the recorded arguments."""
    journal = active.journal
    try:
        if active.check is not None:
            await active.check(journal)
        arguments = bound if bound is not None else await _read_arguments(flow, journal)
        root = Scope(journal, '')
        with root.entered():
            work = partial(run_body, flow, arguments)
            value = await root.step(flow.name, work, codec=flow.inputs.result, opening=True, last=True)
            if journal.info.status != 'done':  # it was recorded by an earlier process, and replayed
                await root.finish()
                await active.end(None)
    except BaseException as error:
        await uncancelled(active.end(error))
        if _only(error, Paused):
            questions = [Question(path=path, request=request) for path, request in journal.waiting.items()]
            raise FlowPaused(journal.run, questions) from None
        if isinstance(error, Exception):
            error.add_note(_note(flow, journal.run, error))
        raise
    finally:
        await uncancelled(active.close())
    return value


def _note(flow: RecordedFunction[..., object], run: str, error: BaseException) -> str:
    inside = [path.partition('/')[2] for path in failed_paths(error)]
    where = f'in step {inside[0]} of {flow.name}' if inside and inside[0] else f'in {flow.name}'
    return f'{where} {run}; resume it with {flow.name}.resume({run!r})'


# Resume ---------------------------------------------------------------------------------------------------------------


async def resume(
    flow: RecordedFunction[..., R],
    run: str,
    *,
    journal: Store | str | None = None,
    user: str | None = None,
    on_change: OnChange = 'fail',
    interrupted: Status = 'stopped',
    check: Check | None = None,
) -> R:
    """See `Flow.resume`. The result of a run that is done is only read."""
    handle = await store_handle(journal)
    try:
        info = await flow_info(handle.store, run, user)
        if info.status == 'done':
            value = await result_of(flow, handle.store, run)
            await handle.close()
            return value
        opened = await Journal.open(handle.store, run, user=user, on_change=on_change)
    except BaseException:
        await handle.close()
        raise
    return await drive(flow, None, ActiveRun(opened, handle, interrupted=interrupted, check=check))


async def flow_info(store: Store, run: str, user: str | None) -> RunInfo:
    """The info of a run of this user. Raises `RunNotFound`, and `JournalError` if it is not the run of a flow."""
    info = await info_of(store, run, user)
    if info.kind != 'flow':
        msg = f'{run} is the run of an agent ({info.name}): resume it with that agent'
        raise JournalError(msg)
    return info


async def _read_arguments(flow: RecordedFunction[..., object], journal: Journal) -> inspect.BoundArguments:
    entry = journal.index.find('')
    if entry is None or entry.opened is None:
        msg = f'{journal.run} has no record of its arguments: delete it, and start a new run'
        raise JournalError(msg)
    fields = json_object(await journal.value_of(entry.opened))
    if fields['flow'] != flow.name:
        msg = f'{journal.run} is a run of the flow {fields["flow"]}, not of {flow.name}: resume it with that flow'
        raise RunChanged(msg)
    return flow.inputs.read(json_object(fields['inputs']))


async def result_of(flow: RecordedFunction[..., R], store: Store, run: str) -> R:
    """The return value of the flow of a run that is done."""
    entry = Index(await store.load(run)).find(f'{flow.name}#1')
    if entry is None or entry.end is None:
        msg = f'{run} is not a run of the flow {flow.name}: resume it with the flow that created it'
        raise RunChanged(msg)
    return flow.inputs.result.read(await value_of(store, run, entry.end))


async def reset(run: str, *, journal: Store | str | None = None, user: str | None = None) -> None:
    """See `Flow.reset`."""
    handle = await store_handle(journal)
    try:
        await flow_info(handle.store, run, user)
        opened = await Journal.open(handle.store, run, user=user)
        try:
            steps = dict.fromkeys(path.partition('/')[0] for path, _ in opened.index.inside('') if path)
            await opened.write('voided', '', value=[f'{path}/' for path in steps])
            await opened.end('stopped')
        finally:
            await opened.close()
    finally:
        await handle.close()


# Runs in the background -----------------------------------------------------------------------------------------------


class FlowRun(Generic[R]):
    """A run in the background of this process."""

    def __init__(self, active: ActiveRun, task: 'asyncio.Task[R]') -> None:
        self._journal = active.journal
        self._task = task
        task.add_done_callback(_retrieve)

    def __repr__(self) -> str:
        return f'<run {self.id}, {self.status}>'

    @property
    def id(self) -> str:
        """The id of the run, for `resume`."""
        return self._journal.run

    @property
    def status(self) -> Status:
        """The status of the run."""
        return self._journal.info.status

    async def result(self) -> R:
        """Wait for the result of the flow, or raise its error. Cancelling the wait does not cancel the run."""
        return await asyncio.shield(self._task)

    async def cancel(self) -> None:
        """Stop the run. It can be resumed."""
        await cancel_tasks([self._task])


def start(flow: RecordedFunction[..., R], bound: inspect.BoundArguments, active: ActiveRun) -> FlowRun[R]:
    """Run the flow in a task of its own."""
    return FlowRun(active, asyncio.create_task(drive(flow, bound, active), name=active.journal.run))


def _retrieve(task: 'asyncio.Task[R]') -> None:
    """Mark an error as retrieved, so that asyncio does not log it: it is in the record of the run."""
    if not task.cancelled():
        task.exception()
