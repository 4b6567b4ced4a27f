"""The steps of an agent, read from the records of a run alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from habilis.agent.context.output import OutputType
from habilis.agent.context.prompt import answer_refused
from habilis.agent.contract import Result, Step
from habilis.agent.durable.audit import read_calls
from habilis.agent.durable.codecs import ResultCodec, result_without_output
from habilis.agent.durable.records import (
    ASK,
    CELL,
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
from habilis.agent.loop.code_turn import CELL_OUTCOME, CellOutcome
from habilis.core.codec import Json
from habilis.core.errors import CorruptRecord, NotDurable
from habilis.journal import Codec
from habilis.journal.failures import decode_error
from habilis.journal.index import PathRecords, name_of, parent_of
from habilis.journal.runs import RunView
from habilis.journal.values import PLAIN, plain_value
from habilis.models.contract import Reply, Usage
from habilis.sandbox import ToolCall

_TASK = 'task'
"""Field of recorded inputs that tells the run of an agent from other steps."""

Entries = Sequence[tuple[str, PathRecords]]
"""Journal entries with their paths."""


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

    result: Result[Any] | None = None
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
    found: dict[str, dict[str, Json]] = {}
    for path, entry in view.steps():
        if entry.opened is None:
            continue
        inputs = await view.value_or_none(entry.opened)
        if isinstance(inputs, dict) and isinstance(inputs.get(_TASK), str):
            found[path] = inputs
    return [await _AgentReader(view, path, found).read(inputs) for path, inputs in found.items()]


def step_count(view: RunView) -> int:
    """Number of model replies in the run of an agent; of finished steps in a flow. Reads no values."""
    done = [path for path, entry in view.steps() if entry.end is not None and entry.end.kind == 'done']
    is_agent = view.info.kind == 'agent'
    return sum(path.count('/') == 1 and (not is_agent or name_of(path) == ASK) for path in done)


class _AgentReader:
    """Reads the trajectory of one agent."""

    def __init__(self, view: RunView, path: str, agents: Iterable[str]) -> None:
        self._view = view
        self._path = path
        self._inner = tuple(f'{other}/' for other in agents if other.startswith(f'{path}/'))
        """Start of the paths inside agents that a tool of this one has run."""

        self._notes = [record for record in view.records if record.kind == 'noted' and record.path == path]
        """Notes that no step has taken yet."""

    async def read(self, inputs: Mapping[str, Json]) -> Trajectory:
        """The trajectory of the agent with these inputs."""
        known: Inputs = _decode(INPUTS_CODEC, dict(inputs)) or Inputs(task=str(inputs[_TASK]))
        prompt = await self._prompt() or Prompt(system=known.system, asked=known.asked)
        result = await self._result()
        steps = result.steps if result is not None else ()
        turns: list[RecordedStep] = []
        for entries in self._entries_by_turn():
            if result is not None and len(turns) == len(steps):
                break  # the reply after the last step is the summary
            turns.append(await self._turn(len(turns) + 1, entries, steps))
        return Trajectory(
            path=self._path,
            inputs=replace(known, system=prompt.system, asked=prompt.asked),
            turns=tuple(turns),
            imports=prompt.imports,
            result=result,
        )

    async def _prompt(self) -> Prompt | None:
        """The last prompt that was recorded."""
        found: Prompt | None = None
        for record in self._notes:
            value = await self._view.value_or_none(record)
            prompt = _decode(PROMPT_CODEC, value[PROMPT]) if isinstance(value, dict) and PROMPT in value else None
            found = prompt or found
        return found

    def _entries_by_turn(self) -> Iterator[Entries]:
        """The entries of each step: the request to the model, then its cells, verdicts and tool calls."""
        entries: list[tuple[str, PathRecords]] = []
        for path, entry in self._view.steps():
            if not path.startswith(f'{self._path}/') or path.startswith(self._inner):
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

    async def _turn(self, number: int, entries: Entries, steps: Sequence[Step]) -> RecordedStep:
        """One turn. `steps` are those of the result, if the run has one."""
        path, asked = entries[0]
        reply, error = await self._value(REPLY_CODEC, asked)
        cells: list[CellOutcome] = []
        cell_paths: list[str] = []
        unfinished = ''
        observations: list[str] = []
        for inner, entry in entries[1:]:
            if self._is_step(inner, CELL):
                outcome, cell_error = await self._value(CELL_OUTCOME, entry)
                error = error or cell_error
                unfinished = unfinished if entry.end is not None else code_of(entry)
                if outcome is not None or unfinished:
                    cell_paths.append(inner)
                if outcome is not None:
                    cells.append(outcome)
                    observations.append(outcome.observation)
            elif self._is_step(inner, VERDICT):
                verdict, _ = await self._value(VERDICT_CODEC, entry)
                if verdict is not None and verdict.note:
                    observations.append(verdict.note)
            elif self._is_step(inner, VALIDATED):
                validated, validator_error = await self._value(PLAIN, entry)
                error = error or validator_error
                if refused := _refused(validated):
                    observations.append(answer_refused(refused))
        step = steps[number - 1] if number <= len(steps) else None
        first = asked.first or 0
        return RecordedStep(
            number=number,
            path=path,
            at=self._view.records[first - 1].at,
            user_messages=self._user_messages(first),
            reply=reply,
            cells=tuple(cells),
            cell_paths=tuple(cell_paths),
            unfinished=unfinished,
            observation=('\n'.join(observations) or None) if step is None else step.observation,
            calls=tuple(await read_calls(self._view, entries, reply, cells, step.calls if step is not None else ())),
            error=error,
        )

    def _user_messages(self, before: int) -> tuple[str, ...]:
        """Messages of the user in notes that were recorded before this record."""
        messages: list[str] = []
        while self._notes and self._notes[0].seq < before:
            value = self._notes.pop(0).value
            note = _decode(RESUMED_CODEC, value[RESUMED]) if isinstance(value, dict) and RESUMED in value else None
            if note is not None and note.answer is not None:
                messages.append(note.answer)
        return tuple(messages)

    async def _result(self) -> Result[Any] | None:
        entry = self._view.index.find(self._path)
        if entry is None or entry.end is None or entry.end.kind != 'done':
            return None
        value = await self._view.value_or_none(entry.end)
        try:
            return ResultCodec(OutputType(None)).read(value)
        except NotDurable:  # only the agent knows the type of the output
            pass
        try:
            output = plain_value(value.get('o') if isinstance(value, dict) else None)
            return replace(result_without_output(value), output=output)
        except NotDurable:
            return None

    async def _value(self, codec: Codec[Any], entry: PathRecords) -> tuple[Any, str]:
        """The recorded value, or None and the error that was recorded."""
        if entry.end is None:
            return None, ''
        try:
            value = await self._view.value(entry.end)
        except CorruptRecord as error:
            msg = f'record {entry.end.seq} of {self._view.run} is damaged: {error}'
            self._view.damage.append(CorruptRecord(msg))
            return None, msg
        if entry.end.kind == 'failed':
            error = decode_error(value)
            return None, f'{type(error).__name__}: {error}'
        return _decode(codec, value), ''


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
