"""Researches that the server runs, and their plans as a person sees and changes them."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Literal

from pydantic import BaseModel, Field

from habilis.core.closing import Closing
from habilis.core.errors import HabilisError, RunBusy
from habilis.flows import FlowPaused
from habilis.journal import Store
from habilis.journal.copies import new_run_id
from habilis.journal.lookup import info_of
from habilis.models.contract import Model
from habilis.research import PlanChange, Report, Research
from habilis.research.documents import RENDERERS
from habilis.research.plan_changes import change_plan
from habilis.research.state import read_report, read_state
from habilis.server.assistant.turn_choices import SERVED
from habilis.server.models import Strict
from habilis.server.operations import BadRequest
from habilis.tools.web.contract import PageSource

WEB = 'web'
"""The name of the source that is recorded with a run: `habilis research --resume` takes the same."""

logger = logging.getLogger('habilis.server')


class NewResearch(Strict):
    """What to find out."""

    goal: str = Field(min_length=1, max_length=10_000)
    effort: Literal['low', 'medium', 'high'] = 'medium'
    form: Literal['report', 'blog', 'brief', 'table'] = 'report'


class PlanChangeRequest(Strict):
    """A sub-goal to add, or the number of one to drop."""

    add: str = Field('', max_length=2_000)
    drop: int = Field(0, ge=0)


class SubGoalModel(BaseModel):
    """One question of the plan."""

    id: int
    text: str
    status: str
    finding: str
    by_user: bool
    notes: list[str]
    """Passages of pages."""


class SourceModel(BaseModel):
    """A page that was read."""

    url: str
    title: str
    notes: int


class ResearchModel(BaseModel):
    """A research: its plan with what was found, its sources, and what is written."""

    goal: str
    effort: str
    plan: list[SubGoalModel]
    sources: list[SourceModel]
    outline: list[str]
    written: int
    calls: int
    tokens: int
    cost: float
    is_running: bool
    """Whether this server works on it."""

    is_done: bool


class Researches:
    """The researches under way in this process, by run."""

    def __init__(self, store: Store, open_source: Callable[[], PageSource] | None = None) -> None:
        self._store = store
        self._open_source = open_source or _open_web
        self._running: dict[str, tuple[Research, asyncio.Task[Report]]] = {}

    async def start(self, model: Model, user: str, wanted: NewResearch) -> str:
        """Begin a research. Returns its run, which is in the journal then. Raises `HabilisError`."""
        run = new_run_id()

        def work(research: Research) -> Coroutine[object, object, Report]:
            return research.run(
                wanted.goal,
                effort=wanted.effort,
                form=wanted.form,
                sources=[WEB],
                journal=self._store,
                user=user,
                run_id=run,
                started_by=SERVED,
            )

        return await self._begin(model, run, user, work)

    async def resume(self, model: Model, user: str, run: str) -> str:
        """Go on with a research that was stopped, or whose server was killed. Raises `HabilisError`."""
        state = await read_state(self._store, run, user=user)
        if self.is_running(run):
            msg = f'{run} is under way'
            raise RunBusy(msg)
        if state.inputs.get('sources') != [WEB]:
            msg = f'{run} reads more than the web: habilis research --resume {run}'
            raise BadRequest(msg)
        return await self._begin(
            model, run, user, lambda research: research.resume(run, journal=self._store, user=user)
        )

    async def is_served(self, run: str) -> bool:
        """Whether it was started on the page, so that the server may resume it."""
        return (await read_state(self._store, run)).inputs.get('started_by') == SERVED

    async def _begin(
        self, model: Model, run: str, user: str, work: Callable[[Research], Coroutine[object, object, Report]]
    ) -> str:
        try:
            source = self._open_source()
        except ImportError as error:
            raise BadRequest(str(error)) from None
        research = Research(model, source)
        task = asyncio.create_task(_closing(source, work(research)))
        self._running[run] = research, task
        task.add_done_callback(lambda _: self._end(run, task))
        while not task.done():
            try:
                await info_of(self._store, run, user)
                return run
            except HabilisError:
                await asyncio.sleep(0.02)
        task.result()  # raises why it did not begin
        return run

    def _end(self, run: str, task: asyncio.Task[Report]) -> None:
        self._running.pop(run, None)
        if task.cancelled():
            return
        error = task.exception()  # those who watch see it in the journal
        if error is not None and not isinstance(error, HabilisError | FlowPaused):
            logger.error('a research failed', exc_info=error)

    def is_running(self, run: str) -> bool:
        """Whether this process works on it."""
        return run in self._running

    async def change(self, user: str, run: str, change: PlanChange) -> None:
        """Change the plan; the next planning obeys. Raises `RunBusy` if another process works on it."""
        await read_state(self._store, run, user=user)  # first: who may not see the run hears nothing else
        if bool(change.add) == bool(change.drop):
            msg = 'give either `add` or `drop`'
            raise BadRequest(msg)
        if run in self._running:
            await self._running[run][0].change_plan(change)
        else:
            await change_plan(self._store, run, change, user=user)

    def stop(self, run: str) -> bool:
        """Stop a research. False if it is not under way here."""
        if run not in self._running:
            return False
        self._running[run][1].cancel()
        return True

    async def close(self) -> None:
        """Stop all. What is recorded stays."""
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def show(self, user: str, run: str) -> ResearchModel:
        """The plan, the notes and the sources. Raises `RunNotFound`, and `ResearchError` if it is no research."""
        state = await read_state(self._store, run, user=user)
        cited = [note.digest for note in state.notes]
        return ResearchModel(
            goal=state.goal,
            effort=str(state.inputs.get('effort', '')),
            plan=[
                SubGoalModel(
                    id=one.id,
                    text=one.text,
                    status=one.status,
                    finding=one.finding,
                    by_user=one.by_user,
                    notes=[note.text for note in state.notes if note.goal == one.id],
                )
                for one in state.plan
            ],
            sources=[SourceModel(url=one.url, title=one.title, notes=cited.count(one.digest)) for one in state.pages],
            outline=list(state.outline[1:]),
            written=len(state.sections),
            calls=state.spent.calls,
            tokens=state.spent.tokens,
            cost=state.spent.cost,
            is_running=self.is_running(run),
            is_done=state.status == 'done',
        )

    async def report(self, user: str, run: str) -> bytes:
        """The report, or what there is of it, as one HTML file in which every citation opens its passage."""
        return RENDERERS['.html'](await read_report(self._store, run, user=user))


async def _closing(source: PageSource, work: Coroutine[object, object, Report]) -> Report:
    try:
        return await work
    finally:
        if isinstance(source, Closing):
            await source.close()


def _open_web() -> PageSource:
    from habilis.tools.web.web import Web

    return Web()
