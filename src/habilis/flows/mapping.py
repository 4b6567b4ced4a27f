"""`map_tasks`: one agent, many tasks, any engine. Started again, it goes on where it was: each task is done once."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from habilis.core.errors import RunBusy, RunNotFound
from habilis.flows.agent_tasks import RUN_TASK, TaskResult, run_task
from habilis.flows.contract import Job, Outcome
from habilis.flows.engine import Engine, outcome_of
from habilis.flows.runs import reset
from habilis.flows.tasks import cancel_tasks
from habilis.journal import RunInfo, Store
from habilis.journal.values import fingerprint

IN_FLIGHT = 32
"""Default of how many runs an engine is given at a time."""


@dataclass(frozen=True, kw_only=True)
class MapTask:
    """One of many tasks."""

    number: int
    """Its place among them, from 1."""

    task: str
    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    id: str = ''
    """The user's name for it, repeated in the outcome."""


@dataclass(frozen=True, kw_only=True)
class MapOutcome:
    """How one of many tasks ended."""

    task: MapTask
    run: str
    status: Literal['done', 'failed', 'waiting', 'stopped', 'not started']
    """`not started`: the budget was spent."""

    result: TaskResult | None = None
    """If the run is done: the answer, or that it ended without one."""

    error: str = ''
    is_new: bool = True
    """Whether this map has run it, and not an earlier one."""

    @property
    def ended(self) -> str:
        """`answer`, the limit, or the status of the run."""
        return self.result.ended if self.result is not None else self.status


@dataclass(frozen=True, kw_only=True)
class TaskMap:
    """What many tasks have in common."""

    app: str
    """`module:name` of an agent, or of a function that makes one of `options`."""

    options: object = None
    user: str = ''
    retry: bool = False
    """Run tasks again that have no answer. A failed run is resumed: what it has recorded is not repeated."""

    budget: float | None = None
    """No more runs are started once the cost of all of them, in US dollars, is this much."""

    reserve: float = 0.0
    """The most that one run can cost, kept free for each that is under way; so the budget is never exceeded."""

    in_flight: int = IN_FLIGHT

    def run_of(self, task: MapTask) -> str:
        """The id of the run of a task, the same in every map of it."""
        content = fingerprint(self.app, self.options, self.user, task.task, task.variables)
        return f'map-{content}-{task.number}'


async def map_tasks(
    what: TaskMap, tasks: Iterable[MapTask], *, engine: Engine, store: Store
) -> AsyncGenerator[MapOutcome, None]:
    """Run the tasks, a bounded number at a time, and yield each outcome as it comes.

    Args:
        what: the agent and the limits.
        tasks: the tasks; read as they are needed.
        engine: where they run.
        store: the store of the engine.
    """
    driver = _Driver(what, engine, store)
    source = iter(tasks)
    pending: set[asyncio.Task[MapOutcome]] = set()
    ended: set[asyncio.Task[MapOutcome]] = set()
    spent = 0.0
    try:
        while True:
            while len(pending) < what.in_flight and (task := next(source, None)) is not None:
                may_start = what.budget is None or spent + what.reserve * (len(pending) + 1) <= what.budget
                may_start = may_start and (what.budget is None or spent < what.budget)
                pending.add(asyncio.create_task(driver.finish(task, may_start=may_start)))
            if not pending:
                return
            ended, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for outcome in (one.result() for one in ended):
                spent += (outcome.result.cost if outcome.result is not None else None) or 0.0
                yield outcome
    finally:
        await cancel_tasks([*pending, *ended])


class _Driver:
    """Brings single tasks to their ends."""

    def __init__(self, what: TaskMap, engine: Engine, store: Store) -> None:
        self._what = what
        self._engine = engine
        self._store = store

    async def finish(self, task: MapTask, *, may_start: bool) -> MapOutcome:
        """Run a task, unless an earlier map has."""
        run = self._what.run_of(task)
        info = await self._info(run)
        job = Job(run=run, user=self._what.user)
        if info is None:
            inputs = {'app': self._what.app, 'task': task.task, 'variables': task.variables}
            job = Job(run=run, user=self._what.user, target=RUN_TASK, inputs={**inputs, 'options': self._what.options})
        elif info.status in {'done', 'failed', 'waiting'}:
            earlier = _outcome(task, await outcome_of(self._store, run, run_task), is_new=False)
            if earlier.ended == 'answer' or not (self._what.retry and may_start):
                return earlier
            if earlier.status == 'done':
                await reset(run, journal=self._store)
        if not may_start:
            return MapOutcome(task=task, run=run, status='not started')
        with contextlib.suppress(RunBusy):  # another map has the same task; its outcome is ours
            await self._engine.submit(job)
        return _outcome(task, await self._engine.wait(run), is_new=True)

    async def _info(self, run: str) -> RunInfo | None:
        try:
            return await self._store.info(run)
        except RunNotFound:
            return None


def _outcome(task: MapTask, outcome: Outcome, *, is_new: bool) -> MapOutcome:
    result = outcome.value if isinstance(outcome.value, TaskResult) else None
    return MapOutcome(
        task=task, run=outcome.run, status=outcome.status, result=result, error=outcome.error, is_new=is_new
    )
