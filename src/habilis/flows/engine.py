"""`Engine`: executes runs at least once, somewhere; with the journal, each step is executed once.

An engine needs only `queue_job`, which records a run durably, and `run_job`, which executes it in any process.
`LocalEngine` executes runs in this process, `WorkerPool` in other processes of this machine.
"""

import asyncio
import inspect
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from habilis.core.errors import JournalError, RunBusy, RunNotFound
from habilis.flows.contract import FlowError, FlowPaused, Job, Outcome
from habilis.flows.definitions import Flow
from habilis.flows.runs import ActiveRun, Check, drive, flow_info, new_info, recorded_arguments, result_of, resume
from habilis.flows.stores import StoreHandle
from habilis.flows.targets import load_target
from habilis.flows.tasks import cancel_tasks
from habilis.journal import Journal, Record, RunInfo, Status, Store
from habilis.journal.copies import new_run_id
from habilis.journal.creation import create_run
from habilis.journal.leases import claims

ENDED: frozenset[Status] = frozenset({'waiting', 'stopped', 'failed', 'done'})
POLL_SECONDS = 0.1
_BUSY_SECONDS = 1.0
_TAKEN_OVER, _LAST_OWNER = 'taken over', 'last owner'
"""Fields of the note about a takeover."""

READY = 'ready'
"""The first output line of a worker process that is ready to take runs."""

DEATHS = 3
"""How many processes may die while they execute a run; then the run is taken for the cause, and fails."""

_TAKEOVERS = 10
"""The same for takeovers from other machines, of whose processes it is not known whether they have died."""


class Engine(Protocol):
    """Executes runs."""

    async def submit(self, job: Job) -> str:
        """Queue a run, durably: it is executed at least once even if this process dies. Returns its id."""
        ...

    async def wait(self, run: str) -> Outcome:
        """Wait until the run has ended, or waits for a person."""
        ...

    async def close(self) -> None:
        """Stop executing runs. Runs that are not done can be submitted again."""
        ...


# Parts of every engine ------------------------------------------------------------------------------------------------


async def queue_job(job: Job, store: Store, *, apps: Sequence[str] = ()) -> str:
    """Record a job as a `queued` run with its arguments; returns the id of the run.

    Without a target, the run that the job names is queued again, to be resumed or retried.
    """
    if not job.target:
        return await _queue_again(store, job.run, job.user or None)
    return (await _create(job, store, apps)).info.run


@dataclass(frozen=True, kw_only=True)
class _CreatedRun:
    """A run that was recorded as queued, with what its execution needs."""

    flow: Flow[..., object]
    bound: inspect.BoundArguments
    info: RunInfo
    records: Sequence[Record]


async def _create(job: Job, store: Store, apps: Sequence[str]) -> _CreatedRun:
    flow = load_target(job.target, apps=apps)
    bound = flow.inputs.bind_named(job.inputs)
    first = recorded_arguments(flow, bound)
    info = new_info(flow, bound, run=job.run or new_run_id(), user=job.user, session=job.session)
    advice = 'submit it without a target to resume it, or choose another id'
    info, records = await create_run(store, replace(info, name=job.target), first, advice=advice)
    return _CreatedRun(flow=flow, bound=bound, info=info, records=records)


async def _queue_again(store: Store, run: str, user: str | None) -> str:
    info = await flow_info(store, run, user)
    if info.status in {'queued', 'done'}:
        return run
    journal = await Journal.open(store, run, user=user)
    try:
        await journal.set_status('queued')
    finally:
        await journal.close()
    return run


async def run_job(
    job: Job, store: Store, *, apps: Sequence[str] = (), interrupted: Status = 'stopped', check: Check | None = None
) -> Outcome:
    """Execute a job in this process: resume its run if there is one, otherwise start it.

    Args:
        job: the job; only its `run` is needed if it was queued.
        store: the store that all processes of the engine share.
        apps: see `load_target`.
        interrupted: the status of the run if this is cancelled; `queued` lets other processes resume it.
        check: called after the run was claimed; see `check_deaths`.
    """
    run = job.run
    if job.target and (not run or not await _exists(store, run)):
        run = await queue_job(job, store, apps=apps)
    info = await flow_info(store, run, job.user or None)
    flow = load_target(info.name, apps=apps)
    work = resume(flow, run, journal=store, user=job.user or None, interrupted=interrupted, check=check)
    return await _finish(work, store, run, flow)


async def _finish(work: Coroutine[object, object, object], store: Store, run: str, flow: Flow[..., object]) -> Outcome:
    """The outcome of a run that this work executes."""
    try:
        return Outcome(run=run, status='done', value=await work)
    except FlowPaused:
        pass
    except Exception as error:
        if (await store.info(run)).status not in ENDED:
            raise
        if isinstance(error, JournalError):
            raise
    return await outcome_of(store, run, flow)


async def finish_job(run: str, store: Store, *, apps: Sequence[str] = ()) -> None:
    """Execute a queued or abandoned run to its end, or wait for it while another process executes it.

    What an engine starts somewhere, at least once: calls for the same run in several processes do no harm.
    """
    while True:
        try:
            await run_job(Job(run=run), store, apps=apps, interrupted='queued', check=check_deaths)
        except RunBusy:  # its lease expires if that process has died on another machine
            if (await store.info(run)).status not in ENDED:
                await asyncio.sleep(_BUSY_SECONDS)
                continue
        return


async def _exists(store: Store, run: str) -> bool:
    try:
        await store.info(run)
    except RunNotFound:
        return False
    return True


async def outcome_of(store: Store, run: str, flow: Flow[..., object]) -> Outcome:
    """The outcome of a run that has ended, or waits for a person."""
    info = await store.info(run)
    value = await result_of(flow, store, run) if info.status == 'done' else None
    if info.status == 'queued' or info.status == 'running':
        msg = f'{run} has not ended: its status is {info.status}'
        raise FlowError(msg)
    return Outcome(run=run, status=info.status, value=value, error=info.error)


async def wait_in_store(store: Store, run: str, *, apps: Sequence[str] = ()) -> Outcome:
    """Poll the store until a run has ended, or waits for a person."""
    while (info := await store.info(run)).status not in ENDED:  # noqa: ASYNC110 - other processes cannot set an event here
        await asyncio.sleep(POLL_SECONDS)
    return await outcome_of(store, run, load_target(info.name, apps=apps))


# Runs whose process died ----------------------------------------------------------------------------------------------


async def is_abandoned(store: Store, info: RunInfo) -> bool:
    """Whether a run needs a process: it is queued, or the process that executed it has died."""
    if info.kind != 'flow' or info.status not in {'queued', 'running'}:
        return False
    lease = await store.lease(info.run)
    if lease.epoch == 0 and info.status == 'running' and info.created + claims.SECONDS > time.time():
        return False  # the process that has just created it claims it next
    return not claims.is_held(lease)


class TooManyDeaths(FlowError):
    """Too many processes have died while they executed a run."""


async def check_deaths(journal: Journal, *, deaths: int = DEATHS) -> None:
    """After a run was claimed: record whether its last process died. Raises `TooManyDeaths` at the limit."""
    status = journal.info.status
    if status not in {'queued', 'running'}:
        msg = f'{journal.run} is {status}: another worker has taken it'
        raise RunBusy(msg)
    if status == 'queued':
        return
    if journal.last_owner is None:
        return
    owners = [*_last_owners(journal.loaded), journal.last_owner]
    await journal.write('noted', '', value={_TAKEN_OVER: len(owners), _LAST_OWNER: journal.last_owner})
    died = owners.count('dead')
    if died >= deaths or len(owners) >= _TAKEOVERS:
        what = f'{died} processes died' if died >= deaths else f'{len(owners)} processes died or stopped responding'
        msg = f'{what} while they executed this run; find out why, then resume it'
        raise TooManyDeaths(msg)


def _last_owners(records: Sequence[Record]) -> list[str]:
    """The states of the processes from which the run was taken over since it last ended."""
    last = max((at for at, record in enumerate(records) if record.kind == 'ended'), default=-1)
    notes = [
        record.value for record in records[last + 1 :] if record.kind == 'noted' and isinstance(record.value, dict)
    ]
    return [str(note.get(_LAST_OWNER, 'dead')) for note in notes if _TAKEN_OVER in note]


# LocalEngine ----------------------------------------------------------------------------------------------------------


class LocalEngine:
    """An `Engine` that executes runs as tasks of this event loop."""

    def __init__(self, store: Store, *, apps: Sequence[str] = ()) -> None:
        self._store = store
        self._apps = tuple(apps)
        self._tasks: dict[str, asyncio.Task[Outcome]] = {}

    async def submit(self, job: Job) -> str:
        """See `Engine`."""
        if job.target:
            created = await _create(job, self._store, self._apps)
            run, work = created.info.run, self._begin(created)
        else:
            run = await queue_job(job, self._store, apps=self._apps)
            work = self._resume(run)
        self._tasks[run] = task = asyncio.create_task(work, name=run)
        task.add_done_callback(self._ended)
        return run

    async def _begin(self, created: _CreatedRun) -> Outcome:
        """Execute a run that was just created: what its record has is known."""
        store, run = self._store, created.info.run
        try:
            journal = await Journal.begin(store, created.info, created.records)
        except RunBusy:  # a worker process was faster
            return await self._resume(run)
        active = ActiveRun(journal, StoreHandle(store=store, owned=False), interrupted='queued')
        return await _finish(drive(created.flow, created.bound, active), store, run, created.flow)

    async def _resume(self, run: str) -> Outcome:
        return await run_job(Job(run=run), self._store, apps=self._apps, interrupted='queued')

    def _ended(self, task: 'asyncio.Task[Outcome]') -> None:
        if not task.cancelled() and task.exception() is None:
            self._tasks.pop(task.get_name(), None)  # the outcome is in the store; an engine may do a million runs

    async def wait(self, run: str) -> Outcome:
        """See `Engine`."""
        if run not in self._tasks:
            return await wait_in_store(self._store, run, apps=self._apps)
        return await asyncio.shield(self._tasks[run])

    async def close(self) -> None:
        """See `Engine`. Runs that are not done stay `queued`."""
        await cancel_tasks([task for task in self._tasks.values() if not task.done()])
