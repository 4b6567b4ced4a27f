"""What a run records is decoded as it was, and damaged records are refused."""

import asyncio
import dataclasses
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from habilis.agent.context.output import OutputType
from habilis.agent.contract import Result, RunLimits, Step, Waiting
from habilis.agent.durable.audit import CallRecords
from habilis.agent.durable.cells import CELL_CODEC, CellOutcome, RecordedCell
from habilis.agent.durable.codecs import DataCodec
from habilis.agent.durable.records import INPUTS_CODEC, REPLY_CODEC, RESUMED_CODEC, VERDICT_CODEC, Inputs, Resumed
from habilis.agent.durable.results import RecordedTurn, ResultCodec, read_messages, record_messages, record_result
from habilis.agent.policies import Verdict
from habilis.core import codec
from habilis.core.codec import Json
from habilis.core.errors import NotDurable
from habilis.journal import Record
from habilis.journal.index import Index
from habilis.models.contract import FunctionCall, Message, Reply, Usage
from habilis.sandbox.contract import Cell, CellError, Display, FileChange, ToolCall, Variable
from tests.cases import each_case

pytestmark = pytest.mark.one_protocol

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.decimals(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)

usages = st.builds(Usage, requests=st.integers(0), input_tokens=st.integers(0), cost=st.none() | st.floats(0, 10))
function_calls = st.builds(FunctionCall, id=st.text(), name=st.text(), arguments=st.text())
replies = st.builds(Reply, text=st.text(), calls=st.lists(function_calls, max_size=2).map(tuple), usage=usages)
messages = st.builds(
    Message,
    role=st.sampled_from(['user', 'assistant', 'tool']),
    text=st.text(),
    created_at=st.none() | st.datetimes(timezones=st.just(UTC)),
)
errors = st.builds(CellError, kind=st.sampled_from(['exception', 'time']), type=st.text(), message=st.text())
cells = st.builds(
    Cell,
    value=plain,
    text=st.none() | st.text(),
    stdout=st.text(),
    error=st.none()
    | st.builds(CellError, kind=st.sampled_from(['exception', 'time']), type=st.text(), message=st.text()),
    files=st.lists(st.builds(FileChange, path=st.text(), size=st.integers(0), change=st.just('new'))).map(tuple),
    calls=st.lists(
        st.builds(
            ToolCall,
            tool=st.text(),
            arguments=st.none() | st.dictionaries(st.text(), plain, max_size=2),
            ok=st.booleans(),
            seconds=st.floats(0, 10),
        ),
        max_size=2,
    ).map(tuple),
    displays=st.lists(st.builds(Display, mime=st.text(), data=st.text() | st.binary()), max_size=2).map(tuple),
    lost=st.lists(st.text(), max_size=2).map(tuple),
)
variables = st.builds(Variable, name=st.text(), type=st.text(), size=st.text(), text=st.text())


async def no_value(record: Record) -> Json:
    """No record is read."""
    raise AssertionError(record)


def again(kind: DataCodec[Any], value: object) -> object:
    """Written, stored as text, and read."""
    return kind.read(codec.parse(codec.dump(kind.write(value))))


@given(replies)
def test_replies_are_decoded_as_they_were(reply: Reply) -> None:
    assert again(REPLY_CODEC, reply) == reply


@given(
    st.builds(
        CellOutcome,
        code=st.text(),
        cell=cells,
        variables=st.dictionaries(st.text(), variables, max_size=2),
        verdict=st.builds(Verdict, note=st.text(), refuse=st.booleans(), forget=st.sampled_from(['nothing', 'steps'])),
        answered=st.booleans(),
        answer=plain,
        question=st.none() | st.text(),
    )
)
async def test_cells_are_decoded_as_they_were(outcome: CellOutcome) -> None:
    calls = CallRecords(Index(), no_value, 'agent#1')
    recorded = RecordedCell(outcome=outcome, calls=[await calls.refer(call) for call in outcome.cell.calls])
    found = CELL_CODEC.read(codec.parse(codec.dump(CELL_CODEC.write(recorded))))
    assert found.outcome == replace(outcome, cell=replace(outcome.cell, calls=()))
    assert tuple([await calls.resolve(call) for call in found.calls]) == outcome.cell.calls


@given(
    st.builds(
        Inputs,
        task=st.text(),
        variables=st.dictionaries(st.text(), plain, max_size=3),
        artifacts=st.dictionaries(st.text(), st.text(), max_size=3),
        history=st.lists(messages, max_size=3).map(tuple),
        limits=st.builds(RunLimits, steps=st.none() | st.integers(1), cost=st.none() | st.floats(0.1, 9)),
    )
)
def test_inputs_are_decoded_as_they_were(inputs: Inputs) -> None:
    assert again(INPUTS_CODEC, inputs) == inputs


@given(st.builds(Resumed, after=st.integers(0), answer=st.none() | st.text(), limits=st.none() | st.just(RunLimits())))
def test_notes_are_decoded_as_they_were(note: Resumed) -> None:
    assert again(RESUMED_CODEC, note) == note


@dataclass
class Point:
    x: int
    at: date


class Person(BaseModel):
    name: str
    points: list[Point]


OUTPUTS: list[tuple[Any, object]] = [
    (None, {'a': (1, b'2', {3})}),
    (None, None),
    (int, 5),
    (list[Point], [Point(1, date(2024, 1, 2))]),
    (Person, Person(name='Ann', points=[Point(1, date(2024, 1, 2))])),
    (Person | None, None),
    (dict[str, Decimal], {'a': Decimal('1.50')}),
]


@each_case(('kind', 'output'), OUTPUTS)
def test_results_are_decoded_with_outputs_of_their_type(kind: Any, output: object) -> None:
    asyncio.run(check_result(kind, output))


async def check_result(kind: Any, output: object) -> None:
    """A result is decoded as it was."""
    result = Result[Any](
        output=output,
        ended='answer',
        run_id='run-1',
        steps=(Step(number=1, reply=Reply(text='x'), cell=Cell(value=(1, 2))),),
        usage_by_model={'m': Usage(requests=1)},
        messages=(Message(role='user', text='hi', created_at=datetime(2024, 1, 1, tzinfo=UTC)),),
        variables={'rows': [(1, b'x')]},
        waiting=(Waiting(path='p', question='q'),),
    )
    kept = ResultCodec(OutputType(kind))
    turns = [RecordedTurn(path='agent#1/ask#1', reply=Reply(text='x'))]
    recorded = await record_result(result, turns, CallRecords(Index(), no_value, 'agent#1'))
    found = kept.read(codec.parse(codec.dump(kept.write(recorded))))
    assert found.result == replace(result, steps=(), messages=()), 'they have records of their own'
    assert type(found.result.output) is type(output)
    assert found.steps == [{'seconds': 0.0}]
    assert await read_messages(found.messages, Index(), no_value) == result.messages


async def test_a_message_refers_to_the_record_of_its_text() -> None:
    reply, seen = Reply(text='Look.', thinking='Hm.'), 'It is ' + 'long ' * 50
    messages = (
        Message(role='user', text='Go'),
        reply.message,
        Message(role='user', text=seen, by_agent=True),
        Message(role='user', text=f'{seen}!'),
    )
    turn = RecordedTurn(path='agent#1/ask#1', reply=reply, texts=[('agent#1/cell#1', seen)])
    recorded = record_messages(messages, [turn])
    assert recorded[1:3] == [
        {'role': 'assistant', 'at': 'agent#1/ask#1'},
        {'role': 'user', 'by_agent': True, 'at': 'agent#1/cell#1'},
    ]
    cell = RecordedCell(outcome=CellOutcome(cell=Cell(), observation=seen))
    values = {'agent#1/ask#1': REPLY_CODEC.write(reply), 'agent#1/cell#1': CELL_CODEC.write(cell)}
    records = [Record(seq=seq, path=path, kind='done') for seq, path in enumerate(values, 1)]

    async def value(record: Record) -> Json:
        return values[record.path]

    assert await read_messages(recorded, Index(records), value) == messages
    with pytest.raises(NotDurable, match='agent#1/ask#1'):
        await read_messages(recorded, Index(), value)


@given(st.builds(Verdict, note=st.text(), refuse=st.booleans(), forget=st.sampled_from(['nothing', 'reply', 'steps'])))
def test_verdicts_are_decoded_as_they_were(verdict: Verdict) -> None:
    assert again(VERDICT_CODEC, verdict) == verdict


def test_unknown_fields_are_ignored_and_absent_ones_have_their_defaults() -> None:
    assert REPLY_CODEC.read({'text': 'x', 'from_the_future': 1}) == Reply(text='x')
    assert CELL_CODEC.read({'code': 'x', 'cell': {'new': {}}}).outcome == CellOutcome(code='x', cell=Cell())


DAMAGED: list[Json] = [None, 5, 'x', [], [1], {'$': 'tuple', 'v': 5}, {'usage': 5}, {'calls': 5}, {'calls': [5]}]


@each_case('written', DAMAGED)
def test_a_damaged_reply_is_refused_by_name(written: Json) -> None:
    with pytest.raises(NotDurable, match='Reply'):
        REPLY_CODEC.read(written)


results: list[Json] = [None, 5, {}, {'r': {}}, {'o': {'p': 1}}, {'r': 5, 'o': {'p': 1}}, {'r': {'ended': 'x'}, 'o': 5}]


@each_case('written', results)
def test_damaged_results_are_refused(written: Json) -> None:
    with pytest.raises(NotDurable):
        ResultCodec(OutputType(int)).read(written)


def test_every_field_of_a_result_is_data() -> None:
    """A field that cannot be written would be lost without a word."""
    for kind in (Result, Step, Cell, CellError, CellOutcome, Reply, Message, Usage, ToolCall, Inputs):
        for field in dataclasses.fields(kind):
            assert field.init, f'{kind.__name__}.{field.name}'
