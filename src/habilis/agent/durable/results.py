"""What is recorded of a result: output, end and usage. Its steps and messages are in the records of the run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from habilis.agent.context.output import OutputType
from habilis.agent.context.prompt import answer_refused
from habilis.agent.contract import RESULT_FIELDS, Result, Step
from habilis.agent.durable.audit import CallRecords
from habilis.agent.durable.codecs import without_data
from habilis.agent.durable.records import ASK, CELL, REPLY_CODEC, VERDICT
from habilis.core.codec import Json
from habilis.core.dataclass_codec import DataclassCodec
from habilis.core.errors import NotDurable
from habilis.core.narrowing import json_object
from habilis.journal import Codec, Record
from habilis.journal.index import Index, name_of
from habilis.models.contract import Message, Reply

AT: Final = 'at'
"""Field of a recorded message: the path of the record that has its text."""

OBSERVATION: Final = 'observation'
MIN_LENGTH = 60
"""Characters of a text to which a message refers; a shorter one is no longer than the reference."""

_MESSAGE = DataclassCodec(Message)
_TEXTS = {CELL: 'observation', VERDICT: 'note'}
"""Fields of records that have the text of a message, by the name of the step."""


@dataclass(kw_only=True)
class RecordedTurn:
    """A reply of the model, and what the model was told after it, with the paths of their records."""

    path: str
    reply: Reply
    texts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Observations and notes, by path."""

    refused: str = ''
    """Why output validators refused the answer."""

    @property
    def observation(self) -> str | None:
        """What a reader of the records takes for the observation of the step."""
        refused = [answer_refused(self.refused)] if self.refused else []
        return '\n'.join([*(text for _, text in self.texts if text), *refused]) or None


@dataclass(frozen=True, kw_only=True)
class RecordedResult:
    """A result in the journal."""

    result: Result[object]
    """Read from a record, it has neither steps nor messages."""

    steps: Sequence[Mapping[str, Json]] = ()
    """For each step what its records do not say: its seconds, perhaps its observation and calls."""

    messages: Sequence[Json] = ()


class ResultCodec(Codec[RecordedResult]):
    """Encodes results, with the output by the output type of the agent."""

    def __init__(self, output: OutputType) -> None:
        super().__init__(what='a result')
        self._output: Codec[object] = Codec(output.kind, what='the output of an agent')

    def write(self, value: RecordedResult) -> Json:
        """Encode a result. Raises `NotDurable`."""
        result = value.result
        output = self._output.write(result.output) if result.ended == 'answer' else None
        bare = RESULT_FIELDS.encode(replace(result, output=None, steps=(), messages=()))
        steps: list[Json] = [dict(step) for step in value.steps]
        return {'r': bare, 'o': output, 'steps': steps, 'messages': list(value.messages)}

    def read(self, written: Json) -> RecordedResult:
        """Decode a result. Raises `NotDurable`."""
        recorded = result_without_output(written)
        if recorded.result.ended != 'answer':
            return recorded
        output = self._output.read(json_object(written).get('o'))
        return replace(recorded, result=replace(recorded.result, output=output))


def result_without_output(written: Json) -> RecordedResult:
    """A recorded result whose output type is not known here; its `output` is None. Raises `NotDurable`."""
    fields = written if isinstance(written, dict) else {}
    steps, messages = fields.get('steps'), fields.get('messages')
    if not isinstance(steps, list) or not isinstance(messages, list):
        msg = 'this saved Result cannot be read; it is damaged, or of another version'
        raise NotDurable(msg)
    return RecordedResult(
        result=RESULT_FIELDS.decode(fields.get('r')),
        steps=[step if isinstance(step, dict) else {} for step in steps],
        messages=messages,
    )


async def record_result(result: Result[object], turns: Sequence[RecordedTurn], calls: CallRecords) -> RecordedResult:
    """A result for the journal."""
    taken = turns[: len(result.steps)]  # a summary is a reply too, but no step
    steps = [await _step_facts(step, turn, calls) for step, turn in zip(result.steps, taken, strict=True)]
    return RecordedResult(result=result, steps=steps, messages=record_messages(result.messages, turns))


async def _step_facts(step: Step, turn: RecordedTurn, calls: CallRecords) -> dict[str, Json]:
    facts: dict[str, Json] = {'seconds': step.seconds}
    if step.observation != turn.observation or turn.refused:  # the words around a refusal may change
        facts[OBSERVATION] = step.observation
    of_model = [await calls.refer(call) for call in step.calls if call.side == 'model']
    incomplete: list[Json] = [call for call in of_model if not isinstance(call, str)]
    if incomplete:
        facts['calls'] = incomplete
    return facts


# Messages -------------------------------------------------------------------------------------------------------------


def record_messages(messages: Sequence[Message], turns: Sequence[RecordedTurn]) -> list[Json]:
    """Messages for the journal: a reply, and a text that has a record, by its path."""
    replies = {turn.reply.message: turn.path for turn in turns}
    texts = {text: path for turn in turns for path, text in turn.texts if len(text) >= MIN_LENGTH}
    return [_record_message(message, replies, texts) for message in without_data(tuple(messages))]


def _record_message(message: Message, replies: Mapping[Message, str], texts: Mapping[str, str]) -> Json:
    at = replies.get(message if message.created_at is None else replace(message, created_at=None))
    if at is not None:
        message = replace(message, text='', calls=(), thinking='')
    elif (at := texts.get(message.text)) is not None:
        message = replace(message, text='')
    fields = json_object(_MESSAGE.encode(message))
    return fields if at is None else {**fields, AT: at}


async def read_messages(
    recorded: Sequence[Json], index: Index, value: Callable[[Record], Awaitable[Json]]
) -> tuple[Message, ...]:
    """The messages that were recorded. Raises `NotDurable`."""
    messages: list[Message] = []
    for fields in recorded:
        message = _MESSAGE.decode(fields)
        at = fields.get(AT) if isinstance(fields, dict) else None
        entry = index.find(at) if isinstance(at, str) else None
        if isinstance(at, str):
            if entry is None or entry.end is None:
                msg = f'a message refers to {at}, which has no record'
                raise NotDurable(msg)
            message = _with_text(message, name_of(at), await value(entry.end))
        messages.append(message)
    return tuple(messages)


def _with_text(message: Message, step: str, written: Json) -> Message:
    if step == ASK:
        reply = REPLY_CODEC.read(written)
        return replace(message, text=reply.text, calls=reply.calls, thinking=reply.thinking)
    text = written.get(_TEXTS.get(step, '')) if isinstance(written, dict) else None
    if not isinstance(text, str):
        msg = f'a message refers to a record of {step}, which has no text'
        raise NotDurable(msg)
    return replace(message, text=text)
