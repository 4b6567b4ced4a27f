"""`Research`: plan → research → plan again, until no sub-goal is open → outline → sections → report.

Each call of the model, search and fetch is a recorded step, so a run that was killed anywhere resumes there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from habilis.flows import flow, parallel
from habilis.flows.definitions import Flow
from habilis.journal import Journal, Store, recording_scope
from habilis.models.contract import Model
from habilis.research.allowance import Allowance, allowances
from habilis.research.assembly import assemble
from habilis.research.contract import (
    EFFORTS,
    ArchivedPage,
    Effort,
    EffortName,
    Note,
    PlanChange,
    Report,
    ResearchError,
    SubGoal,
)
from habilis.research.forms import read_form
from habilis.research.investigation import Investigation, Researcher
from habilis.research.page_archive import PageArchive
from habilis.research.plan_changes import read_changes, write_change
from habilis.research.planning import changed_plan, keep_plan, make_plan
from habilis.research.requests import Questions
from habilis.research.writing import Writer
from habilis.tools.web.contract import PageSource
from habilis.tools.web.quoting import one_line

Watch = Callable[[str], None]
"""Called with a line about what has happened."""

FLOW_NAME = 'research'
RESEARCH_FLOW = f'{__name__}:research'
"""The name of researches in the journal."""

PARALLEL = 4
"""Sub-goals that are investigated at the same time."""


def _ignore(_: str) -> None:
    """Shows nothing."""


@dataclass(frozen=True, kw_only=True)
class _Gathered:
    """What all rounds have found."""

    plan: list[SubGoal]
    notes: dict[int, tuple[Note, ...]]
    pages: list[ArchivedPage]


class Research:
    """Researches goals with a model and a source of pages."""

    def __init__(
        self, model: Model, source: PageSource, *, max_cost: float | None = None, watch: Watch | None = None
    ) -> None:
        """Choose what it works with.

        Args:
            model: the model. A small one gets shorter prompts, and writes one sentence per note.
            source: where pages come from.
            max_cost: US dollars; a run that has spent them pauses (`FlowPaused`), and can be resumed with more.
            watch: called with a line for each thing that happens.
        """
        self._model = model
        self._source = source
        self._max_cost = max_cost
        self._watch: Watch = watch or _ignore
        self._journal: Journal | None = None
        self._flow: Flow[..., Report] = flow(name=FLOW_NAME)(self._research)

    async def run(
        self,
        goal: str,
        *,
        effort: EffortName = 'medium',
        form: str = 'report',
        sources: Sequence[str] = (),
        journal: Store | str | None = None,
        user: str = '',
        run_id: str | None = None,
        started_by: str = '',
    ) -> Report:
        """Research a goal and write the report.

        Args:
            goal: what to find out.
            effort: `low`, `medium` or `high`: see `EFFORTS`.
            form: `report`, `blog`, `brief`, `table`, or the path of a Markdown file that describes the form.
            sources: names of the sources, recorded for who resumes the run.
            journal: where the run is recorded; None for the default. Inside another run it is a part of that.
            user: the user that the run belongs to.
            run_id: name to resume it by.
            started_by: the program that may resume the run by itself, recorded likewise.
        """
        if not goal.strip():
            msg = 'the goal is empty: say what to find out'
            raise ResearchError(msg)
        arguments: dict[str, Any] = {'effort': effort, 'form': read_form(form), 'sources': list(sources)}
        arguments |= {'model': self._model.name, 'started_by': started_by}
        if recording_scope() is not None:
            return await self._flow(goal, **arguments)
        title = one_line(goal)
        run = await self._flow.start(goal, journal=journal, user=user, run_id=run_id, title=title, **arguments)
        try:
            return await run.result()
        finally:
            await run.cancel()

    async def resume(self, run_id: str, *, journal: Store | str | None = None, user: str | None = None) -> Report:
        """Continue a run that was stopped, paused or killed. The report of a run that is done is only read."""
        return await self._flow.resume(run_id, journal=journal, user=user)

    async def change_plan(self, change: PlanChange) -> None:
        """Change the plan of the run of this object, while it runs. The next planning obeys."""
        if self._journal is None:
            msg = 'no research is running here; use `change_plan` of `habilis.research.plan_changes`'
            raise ResearchError(msg)
        await write_change(self._journal, change)

    # The flow ---------------------------------------------------------------------------------------------------------

    async def _research(
        self,
        goal: str,
        effort: EffortName,
        form: str,
        sources: list[str] | None = None,
        model: str = '',
        started_by: str = '',
    ) -> Report:
        del sources, model, started_by  # recorded for who resumes the run
        scope = recording_scope()
        assert scope is not None  # a flow has one
        bounds, self._journal = EFFORTS[effort], scope.journal
        questions = Questions(self._model, bounds, max_cost=self._max_cost, watch=self._watch)
        archive = PageArchive(self._source)
        reading, writing = allowances(bounds)
        found = await self._read(goal, questions, archive, bounds, reading)
        wanted = [one.id for one in found.plan if not (one.by_user and one.status == 'dropped')]
        notes = [note for number in wanted for note in found.notes.get(number, ())]
        writer = Writer(goal, form, found.plan, notes, found.pages, questions=questions, archive=archive, effort=bounds)
        writing.give_back([reading])
        title, sections = await writer.write(writing)
        return await assemble(title, sections, found.plan, notes, found.pages, archive.text, spent=questions.spent)

    _research.__qualname__ = RESEARCH_FLOW.partition(':')[2]  # what lists of runs call it

    async def _read(
        self, goal: str, questions: Questions, archive: PageArchive, effort: Effort, allowance: Allowance
    ) -> _Gathered:
        """Rounds of planning and reading, until no sub-goal is open or the bounds are reached."""
        found = _Gathered(plan=[], notes={}, pages=[])
        researcher = Researcher(questions, self._source, archive, effort)
        upto = 0
        for round_ in count():
            read = await read_changes(upto)
            upto = read.upto
            if round_ < effort.rounds:
                plan = await make_plan(goal, found.plan, read.changes, questions, effort, allowance)
            else:
                plan = await keep_plan(changed_plan(found.plan, read.changes))
            is_over = round_ >= effort.rounds and len(plan) == len(found.plan)  # a person may add more
            todo = [] if is_over else [one for one in plan if one.status == 'open']
            found = replace(found, plan=plan)
            self._show(plan)
            if not todo:
                break
            shares = allowance.share(len(todo))
            tasks = [
                Investigation(
                    goal=one,
                    whole=goal,
                    allowance=share,
                    notes=found.notes.get(one.id, ()),
                    pages=tuple(found.pages),
                )
                for one, share in zip(todo, shares, strict=True)
            ]
            results = await parallel(researcher.investigate, tasks, limit=PARALLEL)
            allowance.give_back(shares)
            now = {result.goal.id: result for result in results}
            found = _Gathered(
                plan=[now[one.id].goal if one.id in now else one for one in plan],
                notes={**found.notes, **{id_: result.notes for id_, result in now.items()}},
                pages=[*found.pages, *(page for result in results for page in result.pages)],
            )
        return found

    def _show(self, plan: Sequence[SubGoal]) -> None:
        self._watch('plan:')
        for one in plan:
            self._watch(f'  {one.id}. {one.text} [{one.status}]')
