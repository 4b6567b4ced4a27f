"""`Engine`: run, or go on with, a run at least once, somewhere. The journal makes of that: each step once.

`queue_job` and `run_job` are all that an engine needs: the first writes the run down so that it survives everything,
the second does it in any process. `LocalEngine` does so in this one, `WorkerPool` in others of this machine.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

from habilis.core.errors import JournalError, RunBusy, RunNotFound
from habilis.flows.contract import FlowError, FlowPaused, Job, Outcome
from habilis.flows.definitions import Flow
from habilis.flows.ending import end_tasks
from habilis.flows.running import Check, description, flow_info, opening, result_of, resume
from habilis.flows.targets import load_target
from habilis.journal import Journal, Record, RunInfo, Status, Store, leases
from habilis.journal.copying import new_run_id
from habilis.journal.refusals import check_name

_ENDED: frozenset[Status] = frozenset({'waiting', 'stopped', 'failed', 'done'})
_LOOK_AGAIN = 0.1
READY = 'ready'
"""The first line of a worker process: from now on it takes runs."""

DEATHS = 3
"""So many times a run may lose the process that works on it; then it is taken for the cause."""


class Engine(Protocol):
    """Somewhere for runs to run."""

    async def submit(self, job: Job) -> str:
        """Have a run done at least once, from now on whatever happens to this process; gives its name."""
        ...

    async def wait(self, run: str) -> Outcome:
        """How the run ended, or where it waits for a person."""
        ...

    async def close(self) -> None:
        """Work no more. Runs that are not done can be submitted again."""
        ...


# What any engine does -------------------------------------------------------------------------------------------------


async def queue_job(job: Job, store: Store, *, apps: Sequence[str] = ()) -> str:
    """Write a job down as a run that is `queued`, with what it is given; gives its name.

    Without a target, the run that the job names is queued again: to go on with it, or try it again.
    """
    if not job.target:
        return await _queue_again(store, job.run, job.user or None)
    flow = load_target(job.target, apps=apps)
    bound = flow.inputs.bind_named(job.inputs)
    first = opening(flow, bound)
    now = time.time()
    info = description(flow, bound, run=job.run or new_run_id(), user=job.user, session=job.session)
    info = replace(info, name=job.target, created=now, updated=now)
    check_name(info.run)
    if not await store.create(info):
        msg = f'there is a run {info.run} already; submit it without a target to go on with it, or choose another name'
        raise RunBusy(msg)
    lease = await store.claim(info.run, owner=leases.new_owner(), seconds=leases.SECONDS)
    record = Record(seq=1, path='', kind='opened', value=first, at=round(now, 6))
    await store.append(info.run, [record], epoch=lease.epoch, info=info)
    await store.release(info.run, epoch=lease.epoch)
    return info.run


async def _queue_again(store: Store, run: str, user: str | None) -> str:
    info = await flow_info(store, run, user)
    if info.status in {'queued', 'done'}:
        return run
    journal = await Journal.open(store, run, user=user)
    try:
        await journal.mark('queued')
    finally:
        await journal.close()
    return run


async def run_job(
    job: Job, store: Store, *, apps: Sequence[str] = (), interrupted: Status = 'stopped', check: Check | None = None
) -> Outcome:
    """Do a job in this process: go on with its run if there is one, begin it if not. The one thing an engine calls.

    Args:
        job: of which only `run` is needed if it was queued.
        store: that all processes of an engine share.
        apps: see `load_target`.
        interrupted: how the run is left if this is cancelled; `queued` for others to go on with it.
        check: see `check_deaths`.
    """
    run = job.run
    if job.target and (not run or not await _exists(store, run)):
        run = await queue_job(job, store, apps=apps)
    info = await store.info(run)
    flow = load_target(info.name, apps=apps)
    try:
        await resume(flow, run, journal=store, user=job.user or None, interrupted=interrupted, check=check)
    except FlowPaused:
        pass
    except Exception as error:
        if (await store.info(run)).status not in _ENDED:
            raise
        if isinstance(error, JournalError):
            raise
    return await outcome_of(store, run, flow)


async def _exists(store: Store, run: str) -> bool:
    try:
        await store.info(run)
    except RunNotFound:
        return False
    return True


async def outcome_of(store: Store, run: str, flow: Flow[..., Any]) -> Outcome:
    """How a run stands that nobody works on."""
    info = await store.info(run)
    value: object = await result_of(flow, store, run) if info.status == 'done' else None
    if info.status not in _ENDED:
        msg = f'{run} is {info.status}, and has not ended'
        raise FlowError(msg)
    return Outcome(run=run, status=cast('Any', info.status), value=value, error=info.error)


async def wait_in_store(store: Store, run: str, *, apps: Sequence[str] = ()) -> Outcome:
    """Look until a run has ended, or waits for a person, whoever works on it."""
    while (info := await store.info(run)).status not in _ENDED:  # noqa: ASYNC110 - other processes set no event here
        await asyncio.sleep(_LOOK_AGAIN)
    return await outcome_of(store, run, load_target(info.name, apps=apps))


# Runs that lost their process -----------------------------------------------------------------------------------------


async def is_left(store: Store, info: RunInfo) -> bool:
    """Whether a run waits for somebody to work on it: queued, or left behind by a process that died."""
    if info.kind != 'flow' or info.status not in {'queued', 'running'}:
        return False
    lease = await store.lease(info.run)
    if lease.epoch == 0:
        return False  # somebody is just making it
    return lease.until <= time.time() or leases.is_dead(lease.owner)


class Poisoned(FlowError):
    """A run has lost the process that worked on it too often."""


async def check_deaths(journal: Journal, *, deaths: int = DEATHS) -> None:
    """For a worker that has claimed a run: note it if its process had died. Raises `Poisoned` if that is too often."""
    status = journal.info.status
    if status not in {'queued', 'running'}:
        msg = f'{journal.run} is {status}: another worker was faster'
        raise RunBusy(msg)
    if status == 'queued':
        return
    died = 1 + sum(_is_death(record) for record in _since_ended(journal.loaded))
    await journal.write('noted', '', value={'taken over': died})
    if died >= deaths:
        msg = f'{died} processes died while they worked on it; find out why, then resume it'
        raise Poisoned(msg)


def _since_ended(records: Sequence[Record]) -> Sequence[Record]:
    last = max((at for at, record in enumerate(records) if record.kind == 'ended'), default=-1)
    return records[last + 1 :]


def _is_death(record: Record) -> bool:
    return record.kind == 'noted' and isinstance(record.value, dict) and 'taken over' in record.value


# In this process ------------------------------------------------------------------------------------------------------


class LocalEngine:
    """Runs as tasks of this event loop."""

    def __init__(self, store: Store, *, apps: Sequence[str] = ()) -> None:
        self._store = store
        self._apps = tuple(apps)
        self._tasks: dict[str, asyncio.Task[Outcome]] = {}

    async def submit(self, job: Job) -> str:
        """See `Engine`."""
        run = await queue_job(job, self._store, apps=self._apps)
        work = run_job(replace(job, run=run, target=''), self._store, apps=self._apps, interrupted='queued')
        self._tasks[run] = task = asyncio.create_task(work, name=run)
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return run

    async def wait(self, run: str) -> Outcome:
        """See `Engine`."""
        if run not in self._tasks:
            return await wait_in_store(self._store, run, apps=self._apps)
        return await asyncio.shield(self._tasks[run])

    async def close(self) -> None:
        """See `Engine`. Runs that are not done are left `queued`."""
        await end_tasks([task for task in self._tasks.values() if not task.done()])
