"""What an agent did, step by step, from the records of a run alone: for those who read it, audit it or train on it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from habilis.agent.context.output import OutputType
from habilis.agent.context.prompt import PYTHON
from habilis.agent.contract import Result, Step
from habilis.agent.durable.audit import call_as_json, calls_of
from habilis.agent.durable.codecs import DataCodec, ResultCodec
from habilis.agent.durable.recorder import ASK, CELL, REPLY, VERDICT, VERDICT_CODEC, Resumed
from habilis.agent.durable.runs import INPUTS, Inputs
from habilis.agent.loop.code_turn import CELL_OUTCOME, CellOutcome
from habilis.core.codec import Json
from habilis.core.errors import CorruptRecord, NotDurable
from habilis.core.logs import redact
from habilis.journal.failures import decode_error
from habilis.journal.index import Entry, name_of, parent_of
from habilis.journal.runs import RunView
from habilis.models.contract import Message, Reply, Usage
from habilis.sandbox import ToolCall

_NOTE = DataCodec(Resumed, what='a note')
_INPUT_TASK = 'task'


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One step of an agent, as far as it was recorded."""

    number: int
    path: str
    at: float
    """When its first record was written."""

    told: tuple[str, ...] = ()
    """What a person has said before it."""

    reply: Reply | None = None
    cells: tuple[CellOutcome, ...] = ()
    observation: str | None = None
    calls: tuple[ToolCall, ...] = ()
    error: str = ''
    """Why there is no reply, or no result."""

    @property
    def code(self) -> str | None:
        """What was run."""
        return '\n\n'.join(cell.code for cell in self.cells) or None

    @property
    def seconds(self) -> float:
        """That model and code took."""
        reply = self.reply.usage.seconds if self.reply is not None else 0.0
        return reply + sum(cell.cell.seconds for cell in self.cells)


@dataclass(frozen=True, kw_only=True)
class Story:
    """One agent at work: the run itself, or a part of it."""

    path: str
    inputs: Inputs
    turns: tuple[Turn, ...]
    result: Result[Any] | None = None
    """If it has its answer."""

    @property
    def usage(self) -> Usage:
        """Of all replies."""
        return sum((turn.reply.usage for turn in self.turns if turn.reply is not None), Usage())

    @property
    def seconds(self) -> float:
        """That models and code took."""
        return sum(turn.seconds for turn in self.turns)


async def stories(reading: RunView) -> list[Story]:
    """The agents of a run, in the order in which they began: one for the run of an agent, any number for a flow."""
    found: list[Story] = []
    for path, entry in reading.steps():
        if entry.opened is None:
            continue
        value = await reading.value_or_none(entry.opened)
        if isinstance(value, dict) and isinstance(value.get(_INPUT_TASK), str):
            found.append(await _Teller(reading, path).story(value))
    return found


def step_count(reading: RunView) -> int:
    """Replies of the model for the run of an agent; steps that are done for a flow. Reads no values."""
    done = [(path, entry) for path, entry in reading.steps() if entry.end is not None and entry.end.kind == 'done']
    if reading.info.kind == 'agent':
        return sum(name_of(path) == ASK and path.count('/') == 1 for path, _ in done)
    return sum(path.count('/') == 1 for path, _ in done)


class _Teller:
    """Reads one agent."""

    def __init__(self, reading: RunView, path: str) -> None:
        self._reading = reading
        self._path = path
        self._notes = [record for record in reading.records if record.kind == 'noted' and record.path == path]

    async def story(self, opened: Mapping[str, Json]) -> Story:
        inputs = self._read(INPUTS, dict(opened)) or Inputs(task=str(opened[_INPUT_TASK]))
        result = await self._result()
        steps = result.steps if result is not None else ()
        turns: list[Turn] = []
        for parts in self._turns():
            if result is not None and len(turns) == len(steps):
                break  # the summary: it was asked for after the last step
            turns.append(await self._turn(len(turns) + 1, parts, steps))
        return Story(path=self._path, inputs=inputs, turns=tuple(turns), result=result)

    def _turns(self) -> Iterator[list[tuple[str, Entry]]]:
        """The paths of each step: the reply and what came of it."""
        parts: list[tuple[str, Entry]] = []
        for path, entry in self._reading.steps():
            if not path.startswith(f'{self._path}/'):
                continue
            if parent_of(path) == self._path and name_of(path) == ASK:
                if parts and not _is_repeated(parts):
                    yield parts
                parts = []
            parts.append((path, entry))
        if parts and name_of(parts[0][0]) == ASK:
            yield parts

    async def _turn(self, number: int, parts: Sequence[tuple[str, Entry]], steps: Sequence[Step]) -> Turn:
        path, entry = parts[0]
        first = entry.first or 0
        turn = Turn(number=number, path=path, at=self._reading.records[first - 1].at, told=self._told(first))
        reply, error = await self._value(REPLY, entry)
        cells: list[CellOutcome] = []
        seen: list[str] = []
        for inner, cell in parts[1:]:
            if parent_of(inner) == self._path and name_of(inner) == CELL:
                outcome, problem = await self._value(CELL_OUTCOME, cell)
                error = error or problem
                cells += [outcome] if outcome is not None else []
                seen += [outcome.observation] if outcome is not None else []
            elif parent_of(inner) == self._path and name_of(inner) == VERDICT:
                verdict, _ = await self._value(VERDICT_CODEC, cell)
                seen += [verdict.note] if verdict is not None and verdict.note else []
        observation = '\n'.join(seen) or None
        if number <= len(steps):
            observation = steps[number - 1].observation
        made = await calls_of(self._reading, parts, reply, cells, steps[number - 1].calls if steps else ())
        return replace(turn, reply=reply, cells=tuple(cells), observation=observation, calls=tuple(made), error=error)

    def _told(self, before: int) -> tuple[str, ...]:
        told: list[str] = []
        while self._notes and self._notes[0].seq < before:
            value = self._notes.pop(0).value
            note = self._read(_NOTE, value['resumed']) if isinstance(value, dict) and 'resumed' in value else None
            if note is not None and note.answer is not None:
                told.append(note.answer)
        return tuple(told)

    async def _result(self) -> Result[Any] | None:
        entry = self._reading.index.find(self._path)
        if entry is None or entry.end is None or entry.end.kind != 'done':
            return None
        value = await self._reading.value_or_none(entry.end)
        try:
            return ResultCodec(OutputType(None)).read(value)
        except (NotDurable, TypeError, KeyError):  # of a type that only the agent knows
            fields = value if isinstance(value, dict) else {}
            rest = self._read(DataCodec(Result[Any], what='a result'), fields.get('r'))
            return None if rest is None else replace(rest, output=fields.get('o'))

    async def _value(self, kind: DataCodec[Any], entry: Entry) -> tuple[Any, str]:
        """What was recorded, or why there is nothing."""
        if entry.end is None:
            return None, ''
        try:
            value = await self._reading.value(entry.end)
        except CorruptRecord as error:
            msg = f'record {entry.end.seq} of {self._reading.run} is damaged: {error}'
            self._reading.damage.append(CorruptRecord(msg))
            return None, msg
        if entry.end.kind == 'failed':
            error = decode_error(value)
            return None, f'{type(error).__name__}: {error}'
        return self._read(kind, value), ''

    @staticmethod
    def _read(kind: DataCodec[Any], value: Json) -> Any:
        try:
            return kind.read(value)
        except (NotDurable, TypeError):
            return None


def _is_repeated(parts: Sequence[tuple[str, Entry]]) -> bool:
    """Whether the reply failed and was asked for again at once: the conversation was too long, and was shortened."""
    end = parts[0][1].end
    return end is not None and end.kind == 'failed' and len(parts) == 1


# Rows for training ----------------------------------------------------------------------------------------------------


async def rows(reading: RunView) -> list[dict[str, Json]]:
    """One row for each step: what was said until then, the reply, its code, what came of it, and what it is worth.

    Only the last row of an agent has a reward: the score that somebody gave the run, else 1 for an answer and 0 for
    none. Secrets are taken out. The same records always give the same rows.
    """
    found: list[dict[str, Json]] = []
    for story in await stories(reading):
        said = _beginning(story)
        for turn in story.turns:
            said += [_message(Message(role='user', text=text)) for text in turn.told]
            found.append(_row(reading, story, turn, said))
            said += _said(turn)
        if story.turns:
            found[-1]['reward'] = _reward(reading, story)
    return [cast('dict[str, Json]', _without_secrets(row)) for row in found]


def _row(reading: RunView, story: Story, turn: Turn, said: Sequence[Json]) -> dict[str, Json]:
    reply = turn.reply
    return {
        'run': reading.run,
        'agent': story.path,
        'step': turn.number,
        'model': (reply.model if reply is not None else '') or story.inputs.model,
        'messages': list(said),
        'reply': reply.text if reply is not None else None,
        'code': turn.code,
        'observation': turn.observation,
        'calls': [call_as_json(call) for call in turn.calls],
        'error': turn.error or None,
        'usage': asdict(reply.usage) if reply is not None else None,
        'seconds': turn.seconds,
        'reward': None,
    }


def _beginning(story: Story) -> list[Json]:
    inputs = story.inputs
    first: list[Json] = [{'role': 'system', 'content': inputs.system}] if inputs.system else []
    first += [_message(message) for message in inputs.history if message.role != 'system']
    return [*first, {'role': 'user', 'content': inputs.asked or inputs.task}]


def _said(turn: Turn) -> list[Json]:
    """What the step adds to the conversation."""
    reply = turn.reply
    if reply is None:
        return []
    said: list[Json] = [_message(reply.message)]
    if reply.calls:
        return [*said, *_answers(turn, reply)]
    return [*said, {'role': 'user', 'content': turn.observation}] if turn.observation else said


def _answers(turn: Turn, reply: Reply) -> list[Json]:
    """What the functions that the model called have said, each to its own."""
    cells, calls = list(turn.cells), [call for call in turn.calls if call.side == 'model']
    answers: list[Json] = []
    for call in reply.calls:
        text = turn.observation or ''
        if len(reply.calls) > 1 and call.name == PYTHON.name and cells:
            text = cells.pop(0).observation
        elif len(reply.calls) > 1 and calls:
            made = calls.pop(0)
            text = made.error or made.result
        answers.append({'role': 'tool', 'tool_call_id': call.id, 'name': call.name, 'content': text})
    return answers


def _message(message: Message) -> Json:
    said: dict[str, Json] = {'role': message.role, 'content': message.text}
    if message.calls:
        said['tool_calls'] = [
            {'id': call.id, 'type': 'function', 'function': {'name': call.name, 'arguments': call.arguments}}
            for call in message.calls
        ]
    if message.call_id is not None:
        said |= {'tool_call_id': message.call_id, 'name': message.call_name}
    return said


def _reward(reading: RunView, story: Story) -> float:
    if reading.score is not None:
        return reading.score
    return 1.0 if story.result is not None and story.result.ended == 'answer' else 0.0


def _without_secrets(value: Json) -> Json:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    if isinstance(value, dict):
        return {redact(key): _without_secrets(item) for key, item in value.items()}
    return value


def as_lines(found: Sequence[Mapping[str, Json]]) -> str:
    """Rows as JSON lines."""
    return ''.join(f'{json.dumps(row)}\n' for row in found)
