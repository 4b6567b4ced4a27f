"""The outermost flow: it has a journal of its own, and its end is the end of the run."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from habilis.core.codec import Json
from habilis.core.errors import JournalError, LeaseLost, RunBusy, RunChanged, StoreUnavailable
from habilis.flows import bodies
from habilis.flows.contract import FlowPaused, Question
from habilis.flows.ending import end_tasks, undisturbed
from habilis.flows.stores import Opened, opened_store
from habilis.journal import Journal, OnChange, Paused, RunInfo, Scope, Status, Store
from habilis.journal.access import info_of, value_of
from habilis.journal.copying import new_run_id
from habilis.journal.failures import failed_paths
from habilis.journal.index import Index
from habilis.journal.raised import text_of

if TYPE_CHECKING:
    from habilis.flows.definitions import Flow

R = TypeVar('R')
_ERROR_LENGTH = 500

Check = Callable[[Journal], Awaitable[None]]
"""Looks at a run that was claimed, before anything is done."""


class Working:
    """The journal of a run that is being worked on, and the store behind it."""

    def __init__(
        self, journal: Journal, opened: Opened, *, interrupted: Status = 'stopped', check: Check | None = None
    ) -> None:
        self.journal = journal
        self.check = check
        self._opened = opened
        self._interrupted: Status = interrupted
        """How the run is left if its task is cancelled."""

    async def close(self) -> None:
        """Let others have the run."""
        await self.journal.close()
        await self._opened.close()

    async def end(self, error: BaseException | None) -> None:
        """Write down how it ended, if that can be written."""
        journal = self.journal
        try:
            if error is None:
                await journal.end('done')
            elif _only(error, Paused):
                await journal.end('waiting')
            elif _only(error, (asyncio.CancelledError, Paused, KeyboardInterrupt, SystemExit)):
                await journal.end(self._interrupted)
            elif not isinstance(error, (LeaseLost, RunBusy, StoreUnavailable)):
                said = f'{type(error).__name__}: {text_of(error)}'[:_ERROR_LENGTH]
                await journal.end('failed', failed=failed_paths(error), error=said)
        except JournalError:
            if error is None:
                raise  # otherwise what ended the run is what its caller must know


def _only(error: BaseException, kinds: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        group = cast('BaseExceptionGroup[BaseException]', error)
        return all(_only(inner, kinds) for inner in group.exceptions)
    return isinstance(error, kinds)


# A new run ------------------------------------------------------------------------------------------------------------


def description(flow: 'Flow[..., Any]', bound: inspect.BoundArguments, **more: str) -> RunInfo:
    """The run of a flow in a list of runs."""
    return RunInfo(kind='flow', name=flow.target, title=flow.inputs.title(bound), **more)  # pyright: ignore[reportArgumentType]


def opening(flow: 'Flow[..., Any]', bound: inspect.BoundArguments) -> Json:
    """What is recorded first. Raises `FlowArgumentsError` if it cannot be."""
    return {'flow': flow.name, 'inputs': cast('Json', flow.inputs.write(bound))}


async def begin(
    flow: 'Flow[..., Any]',
    bound: inspect.BoundArguments,
    *,
    journal: Store | str | None = None,
    user: str = '',
    session: str = '',
    run_id: str | None = None,
) -> Working:
    """A new run, with what goes in recorded."""
    first = opening(flow, bound)
    opened = await opened_store(journal)
    try:
        info = description(flow, bound, run=run_id or new_run_id(), user=user, session=session)
        made = await Journal.create(opened.store, info)
    except BaseException:
        await opened.close()
        raise
    working = Working(made, opened)
    try:
        await made.write('opened', '', value=first)
    except BaseException:
        await undisturbed(working.close())
        raise
    return working


async def drive(flow: 'Flow[..., R]', bound: inspect.BoundArguments | None, working: Working) -> R:
    """Run the flow to its end, or to where it fails, waits or is cancelled. Without `bound`, with what is recorded."""
    journal = working.journal
    try:
        if working.check is not None:
            await working.check(journal)
        arguments = bound if bound is not None else await _recorded_inputs(flow, journal)
        root = Scope(journal, '')
        with root.entered():
            value = await root.step(
                flow.name, lambda: bodies.body(flow, arguments), codec=flow.inputs.result, opening=True
            )
            await root.left()
        await working.end(None)
    except BaseException as error:
        await undisturbed(working.end(error))
        if _only(error, Paused):
            questions = [Question(path=path, request=request) for path, request in journal.waiting.items()]
            raise FlowPaused(journal.run, questions) from None
        if isinstance(error, Exception):
            error.add_note(_note(flow, journal.run, error))
        raise
    finally:
        await undisturbed(working.close())
    return value


def _note(flow: 'Flow[..., Any]', run: str, error: BaseException) -> str:
    inside = [path.partition('/')[2] for path in failed_paths(error)]
    where = f'in step {inside[0]} of {flow.name}' if inside and inside[0] else f'in {flow.name}'
    return f'{where} {run}; resume it with {flow.name}.resume({run!r})'


# Going on -------------------------------------------------------------------------------------------------------------


async def resume(
    flow: 'Flow[..., R]',
    run: str,
    *,
    journal: Store | str | None = None,
    user: str | None = None,
    on_change: OnChange = 'fail',
    interrupted: Status = 'stopped',
    check: Check | None = None,
) -> R:
    """See `Flow.resume`. What is done already is only read."""
    opened = await opened_store(journal)
    try:
        info = await flow_info(opened.store, run, user)
        if info.status == 'done':
            value = await result_of(flow, opened.store, run)
            await opened.close()
            return value
        made = await Journal.open(opened.store, run, user=user, on_change=on_change)
    except BaseException:
        await opened.close()
        raise
    return await drive(flow, None, Working(made, opened, interrupted=interrupted, check=check))


async def flow_info(store: Store, run: str, user: str | None) -> RunInfo:
    """The run of a flow of this user. Raises `RunNotFound`, and `JournalError` if it is not that of a flow."""
    info = await info_of(store, run, user)
    if info.kind != 'flow':
        msg = f'{run} is the run of an agent ({info.name}): resume it with that agent'
        raise JournalError(msg)
    return info


async def _recorded_inputs(flow: 'Flow[..., Any]', journal: Journal) -> inspect.BoundArguments:
    entry = journal.index.find('')
    if entry is None or entry.opened is None:
        msg = f'{journal.run} ended before what it was given was recorded: start a new run'
        raise JournalError(msg)
    fields = cast('Mapping[str, Json]', await journal.value_of(entry.opened))
    if fields['flow'] != flow.name:
        msg = f'{journal.run} is a run of the flow {fields["flow"]}, and this is {flow.name}: resume it with that one'
        raise RunChanged(msg)
    return flow.inputs.read(cast('Mapping[str, Json]', fields['inputs']))


async def result_of(flow: 'Flow[..., R]', store: Store, run: str) -> R:
    """What the flow of a run that is done has returned."""
    entry = Index(await store.load(run)).find(f'{flow.name}#1')
    if entry is None or entry.end is None:
        msg = f'{run} is not a run of the flow {flow.name}: resume it with the flow that made it'
        raise RunChanged(msg)
    return flow.inputs.result.read(await value_of(store, run, entry.end))


async def reset(run: str, *, journal: Store | str | None = None, user: str | None = None) -> None:
    """See `Flow.reset`."""
    opened = await opened_store(journal)
    try:
        await flow_info(opened.store, run, user)
        made = await Journal.open(opened.store, run, user=user)
        try:
            steps = dict.fromkeys(path.partition('/')[0] for path, _ in made.index.inside('') if path)
            await made.write('voided', '', value=[f'{path}/' for path in steps])
            await made.end('stopped')
        finally:
            await made.close()
    finally:
        await opened.close()


# A run in the background ----------------------------------------------------------------------------------------------


class Run(Generic[R]):
    """A run that goes on in the background of this process."""

    def __init__(self, working: Working, task: 'asyncio.Task[R]') -> None:
        self._journal = working.journal
        self._task = task
        task.add_done_callback(_known)

    def __repr__(self) -> str:
        return f'<run {self.id}, {self.status}>'

    @property
    def id(self) -> str:
        """The name of the run, for `resume`."""
        return self._journal.run

    @property
    def status(self) -> Status:
        """How it stands."""
        return self._journal.info.status

    async def result(self) -> R:
        """Wait for what the flow returns, or raises. Who is cancelled while waiting does not cancel the run."""
        return await asyncio.shield(self._task)

    async def cancel(self) -> None:
        """Stop it. It can be resumed."""
        await end_tasks([self._task])


def run_of(flow: 'Flow[..., R]', bound: inspect.BoundArguments, working: Working) -> Run[R]:
    """The run, begun in a task of its own."""
    return Run(working, asyncio.create_task(drive(flow, bound, working), name=working.journal.run))


def _known(task: 'asyncio.Task[Any]') -> None:
    """How it ended is in the record, whether or not somebody asks for it here."""
    if not task.cancelled():
        task.exception()
