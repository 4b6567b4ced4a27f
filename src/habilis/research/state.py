"""The state of a research as data, from the records of its run: the plan, the notes, the sources, the report so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from habilis.flows.runs import flow_info
from habilis.journal import Codec, Record, Store
from habilis.journal.contract import Status
from habilis.journal.index import Index, name_of
from habilis.journal.lookup import value_of
from habilis.research.assembly import assemble
from habilis.research.contract import ArchivedPage, Note, Report, ResearchError, Section, Spent, SubGoal
from habilis.research.flow import FLOW_NAME, RESEARCH_FLOW
from habilis.research.investigation import GOAL, NOTES
from habilis.research.page_archive import FETCH, FETCHED
from habilis.research.planning import PLAN
from habilis.research.requests import ModelAnswer
from habilis.research.writing import OUTLINE, SECTION

T = TypeVar('T')

_PLAN: Codec[list[SubGoal]] = Codec(list[SubGoal])
_GOAL: Codec[SubGoal] = Codec(SubGoal)
_NOTES: Codec[list[Note]] = Codec(list[Note])
_SECTION: Codec[Section] = Codec(Section)
_OUTLINE: Codec[list[str]] = Codec(list[str])
_ANSWER: Codec[ModelAnswer] = Codec(ModelAnswer)
_REPORT: Codec[Report] = Codec(Report)


@dataclass(frozen=True, kw_only=True)
class ResearchState:
    """A research at one moment."""

    run: str
    status: Status
    goal: str
    inputs: Mapping[str, object]
    """The recorded options: `effort`, `form`, `sources`, `model`, `started_by`."""

    plan: tuple[SubGoal, ...] = ()
    notes: tuple[Note, ...] = ()
    """The scratchpads: the notes of each sub-goal, in order."""

    pages: tuple[ArchivedPage, ...] = ()
    """Everything that was read."""

    outline: tuple[str, ...] = ()
    """The title, then the titles of the sections; empty before the writing."""

    sections: tuple[Section, ...] = ()
    """What is written, in the order of the report."""

    spent: Spent = field(default_factory=Spent)


async def read_state(store: Store, run: str, *, user: str | None = None) -> ResearchState:
    """The state of a run. Raises `RunNotFound`, and `ResearchError` if it is not a research."""
    info = await flow_info(store, run, user)
    if info.name != RESEARCH_FLOW:
        msg = f'{run} is not a research, but a run of {info.name}'
        raise ResearchError(msg)
    reader = _StepResults(store, run, Index(await store.load(run)))
    inputs = await reader.inputs()
    pages = [page for fetched in await reader.results(FETCH, FETCHED) for page in fetched.pages]
    answers = [answer for name in reader.asked for answer in await reader.results(name, _ANSWER)]
    return ResearchState(
        run=run,
        status=info.status,
        goal=str(inputs.pop('goal', '')),
        inputs=inputs,
        plan=tuple(await _plan(reader)),
        notes=tuple(
            sorted(
                (note for notes in await reader.results(NOTES, _NOTES) for note in notes),
                key=lambda note: int(note.id[1:]),
            )
        ),
        pages=tuple({page.digest: page for page in pages}.values()),
        outline=tuple(([*await reader.results(OUTLINE, _OUTLINE)] or [[]])[-1]),
        sections=tuple(sorted(await reader.results(SECTION, _SECTION), key=lambda section: section.place)),
        spent=sum((answer.spent for answer in answers), Spent()),
    )


async def report_so_far(store: Store, run: str, *, user: str | None = None) -> Report:
    """The report of what is there: the sections that are written, or else what was found, without a call."""
    state = await read_state(store, run, user=user)

    async def text_of(digest: str) -> str:
        return (await store.blob(run, digest)).decode()

    sections = state.sections or tuple(
        Section(place=(one.id,), title=one.text, text=one.finding) for one in state.plan if one.finding
    )
    title = state.outline[0] if state.outline else state.goal
    return await assemble(
        title, sections, state.plan, state.notes, state.pages, text_of, spent=state.spent, is_complete=False
    )


async def read_report(store: Store, run: str, *, user: str | None = None) -> Report:
    """The report of a run that is done; else what there is of it."""
    await flow_info(store, run, user)
    reports = await _StepResults(store, run, Index(await store.load(run))).results(FLOW_NAME, _REPORT)
    return reports[-1] if reports else await report_so_far(store, run, user=user)


async def _plan(reader: '_StepResults') -> list[SubGoal]:
    """The latest plan, with what came of its sub-goals since."""
    plans = await reader.ended(PLAN, _PLAN)
    if not plans:
        return []
    last, plan = plans[-1]
    since = {goal.id: goal for seq, goal in await reader.ended(GOAL, _GOAL) if seq > last}
    return [since.get(one.id, one) for one in plan]


class _StepResults:
    """Reads the results of the steps of one run."""

    def __init__(self, store: Store, run: str, index: Index) -> None:
        self._store = store
        self._run = run
        self._index = index
        ends = [entry.end for _, entry in index.inside('') if entry.end is not None and entry.end.kind == 'done']
        self._ends: list[Record] = sorted(ends, key=lambda record: record.seq)

    @property
    def asked(self) -> list[str]:
        """Names of the steps that ask the model."""
        return list(dict.fromkeys(name for end in self._ends if (name := name_of(end.path)).startswith('ask ')))

    async def inputs(self) -> dict[str, object]:
        """The arguments of the run."""
        root = self._index.find('')
        opened = await value_of(self._store, self._run, root.opened) if root and root.opened else None
        fields = opened.get('inputs') if isinstance(opened, dict) else None
        values = fields if isinstance(fields, dict) else {}
        return {name: Codec[object]().read(value) for name, value in values.items()}

    async def results(self, name: str, codec: Codec[T]) -> list[T]:
        """The results of all steps of a name, in the order of their ends."""
        return [value for _, value in await self.ended(name, codec)]

    async def ended(self, name: str, codec: Codec[T]) -> list[tuple[int, T]]:
        """The same, each after the number of its record."""
        ends = [end for end in self._ends if name_of(end.path) == name]
        return [(end.seq, codec.read(await value_of(self._store, self._run, end))) for end in ends]
