"""The steps of an agent, read from the records of a run alone."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from habilis.agent.context.output import OutputType
from habilis.agent.context.prompt import answer_refused
from habilis.agent.contract import Result, Step
from habilis.agent.durable.audit import CallRecords, in_order
from habilis.agent.durable.cells import CELL_CODEC, CellOutcome, RecordedCell
from habilis.agent.durable.records import (
    ASK,
    CELL,
    COMPACTION,
    INPUTS_CODEC,
    PROMPT,
    PROMPT_CODEC,
    REPLY_CODEC,
    RESUMED,
    RESUMED_CODEC,
    VALIDATED,
    VERDICT,
    VERDICT_CODEC,
    Inputs,
    Prompt,
    code_of,
)
from habilis.agent.durable.results import OBSERVATION, RecordedResult, ResultCodec, read_messages, result_without_output
from habilis.core.codec import Json
from habilis.core.errors import CorruptRecord, NotDurable
from habilis.journal import Codec, Journal, Record
from habilis.journal.failures import decode_error
from habilis.journal.index import Index, PathRecords, name_of, parent_of
from habilis.journal.runs import RunView
from habilis.journal.values import PLAIN, plain_value
from habilis.models.contract import Reply, Usage
from habilis.sandbox import ToolCall

TASK = 'task'
"""Field of recorded inputs that tells the run of an agent from other steps."""

Entries = Sequence[tuple[str, PathRecords]]
"""Journal entries with their paths."""


class _Records(Protocol):
    """Records of a run, to be read."""

    index: Index
    damage: list[CorruptRecord]

    @property
    def run(self) -> str: ...
    async def value(self, record: Record) -> Json: ...
    async def value_or_none(self, record: Record) -> Json: ...


class _OpenRun:
    """The records of a run that is open for writing. Damage is an error here."""

    def __init__(self, journal: Journal) -> None:
        self.index = journal.index
        self.damage: list[CorruptRecord] = []
        self.run = journal.run
        self.value = self.value_or_none = journal.value_of


@dataclass(frozen=True, kw_only=True)
class RecordedStep:
    """One step of an agent, as far as it was recorded."""

    number: int
    path: str
    at: float
    """Time of its first record."""

    user_messages: tuple[str, ...] = ()
    """Messages of the user since the step before, given when the run was resumed."""

    reply: Reply | None = None
    cells: tuple[CellOutcome, ...] = ()
    cell_paths: tuple[str, ...] = ()
    """Paths of the cells; one more than there are cells if the last is unfinished."""

    unfinished: str = ''
    """The code of a cell that has called tools, and has not ended."""

    observation: str | None = None
    calls: tuple[ToolCall, ...] = ()
    error: str = ''
    """Why there is no reply, or no result."""

    @property
    def code(self) -> str | None:
        """The code of its cells; None if it has none."""
        return '\n\n'.join(filter(None, [*(cell.code for cell in self.cells), self.unfinished])) or None

    @property
    def seconds(self) -> float:
        """Seconds of model and code."""
        reply = self.reply.usage.seconds if self.reply is not None else 0.0
        return reply + sum(cell.cell.seconds for cell in self.cells)


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """All steps of one agent: of a run, or of a part of it."""

    path: str
    inputs: Inputs
    turns: tuple[RecordedStep, ...]
    imports: tuple[str, ...] = ()
    """Import statements that the sandbox ran before the code of the model."""

    result: Result[object] | None = None
    """None unless the agent gave an answer."""

    @property
    def usage(self) -> Usage:
        """Usage of all replies."""
        return sum((turn.reply.usage for turn in self.turns if turn.reply is not None), Usage())

    @property
    def seconds(self) -> float:
        """Seconds of models and code."""
        return sum(turn.seconds for turn in self.turns)


async def read_trajectories(view: RunView) -> list[Trajectory]:
    """The agents of a run in the order in which they started. Each has its own steps, not those of agents inside."""
    entries = view.steps()
    agents = await _find_agents(view, entries)
    return [
        await _AgentReader(view, path, agents, entries, view.records).read(inputs) for path, inputs in agents.items()
    ]


async def read_result(journal: Journal, path: str, recorded: RecordedResult) -> Result[object]:
    """The result of the agent at this path as it was, with steps and messages from their own records.

    Raises `CorruptRecord` or `NotDurable`.
    """
    records = _OpenRun(journal)
    inside = [(inner, entry) for inner, entry in journal.index.inside(path) if entry.first is not None]
    entries = sorted(inside, key=lambda item: item[1].first or 0)
    reader = _AgentReader(records, path, await _find_agents(records, entries), entries)
    turns = await reader.read_turns(recorded)
    if len(turns) != len(recorded.steps):
        msg = f'{journal.run} has a result of {len(recorded.steps)} steps, and records of {len(turns)}'
        raise NotDurable(msg)
    messages = await read_messages(recorded.messages, journal.index, journal.value_of)
    if records.damage:
        raise records.damage[0]
    return replace(recorded.result, steps=tuple(map(_as_step, turns, recorded.steps)), messages=messages)


def _as_step(turn: RecordedStep, facts: Mapping[str, Json]) -> Step:
    if turn.reply is None:
        msg = f'the reply of step {turn.number} cannot be read'
        raise NotDurable(msg)
    seconds = facts.get('seconds')
    return Step(
        number=turn.number,
        reply=turn.reply,
        code=turn.code,
        cell=turn.cells[-1].cell if turn.cells else None,
        calls=turn.calls,
        observation=turn.observation,
        seconds=float(seconds) if isinstance(seconds, (int, float)) else turn.seconds,
    )


async def _find_agents(records: '_Records', entries: 'Entries') -> dict[str, dict[str, Json]]:
    """The inputs of the agents among these entries, by path."""
    found: dict[str, dict[str, Json]] = {}
    for path, entry in entries:
        if entry.opened is None or '(' in name_of(path):  # a tool call
            continue
        inputs = await records.value_or_none(entry.opened)
        if isinstance(inputs, dict) and isinstance(inputs.get(TASK), str):
            found[path] = inputs
    return found


def step_count(view: RunView) -> int:
    """Number of model replies in the run of an agent; of finished steps in a flow. Reads no values."""
    done = [path for path, entry in view.steps() if entry.end is not None and entry.end.kind == 'done']
    is_agent = view.info.kind == 'agent'
    return sum(path.count('/') == 1 and (not is_agent or name_of(path) == ASK) for path in done)


class _AgentReader:
    """Reads the trajectory of one agent."""

    def __init__(
        self, records: _Records, path: str, agents: Iterable[str], entries: Entries, notes: Sequence[Record] = ()
    ) -> None:
        self._records = records
        self._path = path
        self._entries = entries
        self._calls = CallRecords(records.index, records.value_or_none, path)
        self._inner = tuple(f'{other}/' for other in agents if other.startswith(f'{path}/'))
        """Start of the paths inside agents that a tool of this one has run."""

        self._notes = [record for record in notes if record.kind == 'noted' and record.path == path]
        """Notes that no step has taken yet."""

    async def read(self, inputs: Mapping[str, Json]) -> Trajectory:
        """The trajectory of the agent with these inputs."""
        known: Inputs = _decode(INPUTS_CODEC, dict(inputs)) or Inputs(task=str(inputs[TASK]))
        prompt = await self._prompt() or Prompt(system='', asked='')
        recorded = await self._result()
        return Trajectory(
            path=self._path,
            inputs=replace(known, system=prompt.system, asked=prompt.asked),
            turns=tuple(await self.read_turns(recorded)),
            imports=prompt.imports,
            result=None if recorded is None else recorded.result,
        )

    async def read_turns(self, recorded: RecordedResult | None) -> list[RecordedStep]:
        """The steps of the agent, with what the record of its result adds to them."""
        turns: list[RecordedStep] = []
        for entries in self._entries_by_turn():
            if recorded is not None and len(turns) == len(recorded.steps):
                break  # the reply after the last step is the summary
            facts: Mapping[str, Json] = {} if recorded is None else recorded.steps[len(turns)]
            turns.append(await self._turn(len(turns) + 1, entries, facts))
        return turns

    async def _prompt(self) -> Prompt | None:
        """The last prompt that was recorded."""
        found: Prompt | None = None
        for record in self._notes:
            value = await self._records.value_or_none(record)
            prompt = _decode(PROMPT_CODEC, value[PROMPT]) if isinstance(value, dict) and PROMPT in value else None
            found = prompt or found
        return found

    def _entries_by_turn(self) -> Iterator[Entries]:
        """The entries of each step: the request to the model, then its cells, verdicts and tool calls."""
        entries: list[tuple[str, PathRecords]] = []
        for path, entry in self._entries:
            inside = path.startswith(f'{self._path}/') and not path.startswith(self._inner)
            if not inside or self._is_step(path, COMPACTION):
                continue
            if self._is_step(path, ASK):
                if entries and not _is_retried(entries):
                    yield entries
                entries = []
            entries.append((path, entry))
        if entries and name_of(entries[0][0]) == ASK:
            yield entries

    def _is_step(self, path: str, name: str) -> bool:
        """Whether this is a step of the agent itself, with this name."""
        return parent_of(path) == self._path and name_of(path) == name

    async def _turn(self, number: int, entries: Entries, facts: Mapping[str, Json]) -> RecordedStep:
        """One turn. `facts` are what the record of the result says about it."""
        path, asked = entries[0]
        reply, error = await self._value(REPLY_CODEC, asked)
        turn = _TurnParts(error=error)
        for inner, entry in entries[1:]:
            if self._is_step(inner, CELL):
                await self._add_cell(turn, inner, entry)
            elif self._is_step(inner, VERDICT):
                verdict, _ = await self._value(VERDICT_CODEC, entry)
                turn.observations.append('' if verdict is None else verdict.note)
            elif self._is_step(inner, VALIDATED):
                validated, validator_error = await self._value(PLAIN, entry)
                turn.error = turn.error or validator_error
                if refused := _refused(validated):
                    turn.observations.append(answer_refused(refused))
        observation = facts.get(OBSERVATION, '\n'.join(filter(None, turn.observations)) or None)
        first = asked.first or 0
        return RecordedStep(
            number=number,
            path=path,
            at=next(record.at for record in (asked.opened, asked.started, asked.end) if record is not None),
            user_messages=self._user_messages(first),
            reply=reply,
            cells=tuple(turn.cells),
            cell_paths=tuple(turn.cell_paths),
            unfinished=turn.unfinished,
            observation=observation if isinstance(observation, str) else None,
            calls=await self._calls_of(entries, turn.cells, facts),
            error=turn.error,
        )

    async def _add_cell(self, turn: '_TurnParts', path: str, entry: PathRecords) -> None:
        recorded, error = await self._value(CELL_CODEC, entry)
        turn.error = turn.error or error
        turn.unfinished = turn.unfinished if entry.end is not None else code_of(entry)
        if recorded is not None or turn.unfinished:
            turn.cell_paths.append(path)
        if recorded is not None:
            turn.cells.append(outcome := await self._outcome(recorded, entry))
            turn.observations.append(outcome.observation)

    async def _outcome(self, recorded: RecordedCell, entry: PathRecords) -> CellOutcome:
        """A cell with its code and its calls, which have records of their own."""
        outcome = recorded.outcome
        cell = replace(outcome.cell, calls=await self._resolve(recorded.calls))
        return replace(outcome, code=outcome.code or code_of(entry), cell=cell)

    async def _resolve(self, references: Json | Sequence[Json]) -> tuple[ToolCall, ...]:
        """The calls that a record refers to, as far as they can be read."""
        calls: list[ToolCall] = []
        for reference in references if isinstance(references, (list, tuple)) else ():
            with contextlib.suppress(NotDurable):
                calls.append(await self._calls.resolve(reference))
        return tuple(calls)

    async def _calls_of(
        self, entries: Entries, cells: Sequence[CellOutcome], facts: Mapping[str, Json]
    ) -> tuple[ToolCall, ...]:
        """All tool calls of a turn."""
        known = [*(call for cell in cells for call in cell.cell.calls), *await self._resolve(facts.get('calls'))]
        return in_order([*known, *await self._calls.read_others(entries[1:], known)])

    def _user_messages(self, before: int) -> tuple[str, ...]:
        """Messages of the user in notes that were recorded before this record."""
        messages: list[str] = []
        while self._notes and self._notes[0].seq < before:
            value = self._notes.pop(0).value
            note = _decode(RESUMED_CODEC, value[RESUMED]) if isinstance(value, dict) and RESUMED in value else None
            if note is not None and note.answer is not None:
                messages.append(note.answer)
        return tuple(messages)

    async def _result(self) -> RecordedResult | None:
        entry = self._records.index.find(self._path)
        if entry is None or entry.end is None or entry.end.kind != 'done':
            return None
        value = await self._records.value_or_none(entry.end)
        try:
            return ResultCodec(OutputType(None)).read(value)
        except NotDurable:  # only the agent knows the type of the output
            pass
        try:
            output = plain_value(value.get('o') if isinstance(value, dict) else None)
            recorded = result_without_output(value)
            return replace(recorded, result=replace(recorded.result, output=output))
        except NotDurable:
            return None

    async def _value(self, codec: Codec[Any], entry: PathRecords) -> tuple[Any, str]:
        """The recorded value, or None and the error that was recorded."""
        if entry.end is None:
            return None, ''
        try:
            value = await self._records.value(entry.end)
        except CorruptRecord as error:
            msg = f'record {entry.end.seq} of {self._records.run} is damaged: {error}'
            self._records.damage.append(CorruptRecord(msg))
            return None, msg
        if entry.end.kind == 'failed':
            error = decode_error(value)
            return None, f'{type(error).__name__}: {error}'
        return _decode(codec, value), ''


@dataclass(kw_only=True)
class _TurnParts:
    """What was found of a turn so far."""

    error: str
    cells: list[CellOutcome] = field(default_factory=list[CellOutcome])
    cell_paths: list[str] = field(default_factory=list[str])
    unfinished: str = ''
    observations: list[str] = field(default_factory=list[str])


def _refused(validated: Json) -> str:
    """Why output validators refused an answer; empty if they did not."""
    return str(validated.get('refused', '')) if isinstance(validated, dict) else ''


def _decode(codec: Codec[Any], value: Json) -> Any:
    """The decoded value; None if it cannot be read."""
    try:
        return codec.read(value)
    except NotDurable:
        return None


def _is_retried(entries: Entries) -> bool:
    """Whether the request failed and the model was asked again: the conversation was too long and was compacted."""
    end = entries[0][1].end
    return end is not None and end.kind == 'failed' and len(entries) == 1
