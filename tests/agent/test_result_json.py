"""A result as JSON and back: equal for every type of output, readable in later versions, clear about bad text."""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from habilis import Agent, Result, ScriptedModel
from habilis.agent.contract import Agreement, Ended, Step, Waiting
from habilis.core.errors import DocumentError
from habilis.models.contract import FunctionCall, Message, Reply, Usage
from habilis.sandbox.contract import Cell, CellError, Display, FileChange, ToolCall
from tests.agent.scripts import block
from tests.cases import each_case
from tests.core.plain import plain, shape

DOCUMENTS = Path(__file__).parent / 'documents'


class Colour(Enum):
    """Values that are no plain data."""

    RED = 'red'
    BLUE = 'blue'


@dataclass
class Place:
    """A dataclass with fields that JSON has no types for."""

    name: str
    at: datetime
    price: Decimal
    picture: bytes = b''
    tags: frozenset[str] = frozenset()
    colour: Colour = Colour.RED


class Trip(BaseModel):
    """A pydantic model with an alias and nested dataclasses."""

    days: int = Field(alias='numberOfDays')
    places: list[Place] = []
    nights: tuple[date, ...] = ()
    pause: timedelta = timedelta()
    id: UUID | None = None


@dataclass
class Tree:
    """A dataclass that contains itself."""

    name: str
    inside: list['Tree'] = field(default_factory=list['Tree'])


TEXTS = st.text(st.characters(exclude_categories=('Cs',)), max_size=20)
VALUES = st.integers() | TEXTS | st.binary(max_size=9) | st.tuples(st.dates(), st.frozensets(TEXTS, max_size=2))
TIMES = st.datetimes(timezones=st.just(UTC))
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False)
PLACES = st.builds(
    Place,
    name=TEXTS,
    at=TIMES,
    price=DECIMALS,
    picture=st.binary(max_size=20),
    tags=st.frozensets(TEXTS, max_size=3),
    colour=st.sampled_from(Colour),
)
TRIPS = st.builds(
    Trip,
    numberOfDays=st.integers(),
    places=st.lists(PLACES, max_size=2),
    nights=st.lists(st.dates(), max_size=2).map(tuple),
    pause=st.timedeltas(),
    id=st.none() | st.uuids(),
)
TREES = st.recursive(
    st.builds(Tree, name=TEXTS), lambda inside: st.builds(Tree, name=TEXTS, inside=st.lists(inside, max_size=2))
)
OUTPUTS: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(),
    str: TEXTS,
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    bytes: st.binary(),
    Decimal: DECIMALS,
    datetime: TIMES,
    Colour: st.sampled_from(Colour),
    Place: PLACES,
    Trip: TRIPS,
    Tree: TREES,
    list[Place]: st.lists(PLACES, max_size=3),
    dict[str, Place | None]: st.dictionaries(TEXTS, st.none() | PLACES, max_size=2),
    tuple[int, set[str]]: st.tuples(st.integers(), st.sets(TEXTS, max_size=3)),
    Place | int: PLACES | st.integers(),
}


def again(result: Result[Any], kind: Any = None) -> Result[Any]:
    """To JSON, which any reader of JSON reads, and back."""
    text = result.to_json()
    json.loads(text)
    assert text.isascii()
    return Result.from_json(text, output_type=kind)


@pytest.mark.parametrize('kind', OUTPUTS, ids=str)
def test_an_output_of_a_type_is_equal_after_the_round_trip(kind: Any) -> None:
    @settings(max_examples=20)  # each compiles a validator
    @given(OUTPUTS[kind])
    def check(output: object) -> None:
        result = Result(output=output, ended='answer', run_id='r', agreement=Agreement(agreed=True, outputs=(output,)))
        found = again(result, kind)
        assert found == result
        assert type(found.output) is type(output)

    check()


@settings(max_examples=30)
@given(plain)
def test_plain_data_needs_no_type(output: object) -> None:
    assert shape(again(Result(output=output, ended='answer', run_id='r')).output) == shape(output)


MESSAGES = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(['system', 'user', 'assistant', 'tool']),
        text=TEXTS,
        calls=st.lists(st.builds(FunctionCall, id=TEXTS, name=TEXTS, arguments=TEXTS), max_size=2).map(tuple),
        call_id=st.none() | TEXTS,
        thinking=TEXTS,
        cache=st.booleans(),
        created_at=st.none() | TIMES,
        by_agent=st.booleans(),
    ),
    max_size=3,
).map(tuple)
CELLS = st.builds(
    Cell,
    value=VALUES,
    text=st.none() | TEXTS,
    stdout=TEXTS,
    error=st.none() | st.builds(CellError, kind=st.just('exception'), type=TEXTS, message=TEXTS),
    files=st.just((FileChange(path='a', size=1, change='new'),)),
    calls=st.lists(
        st.builds(ToolCall, tool=TEXTS, arguments=st.none() | st.dictionaries(TEXTS, VALUES, max_size=2)),
        max_size=1,
    ).map(tuple),
    displays=st.lists(st.builds(Display, mime=TEXTS, data=TEXTS | st.binary()), max_size=2).map(tuple),
)
STEPS = st.lists(
    st.builds(Step, number=st.integers(1), reply=st.builds(Reply, text=TEXTS), cell=st.none() | CELLS), max_size=2
).map(tuple)
USAGES = st.builds(Usage, requests=st.integers(0, 9), cost=st.none() | st.floats(0, 1))
RESULTS = st.builds(
    Result[Any],
    output=st.none(),
    ended=st.sampled_from(['answer', 'question', 'max_steps']),
    run_id=TEXTS,
    steps=STEPS,
    usage=USAGES,
    usage_by_model=st.dictionaries(TEXTS, USAGES, max_size=2),
    seconds=st.floats(0, 100),
    messages=MESSAGES,
    variables=st.dictionaries(TEXTS, VALUES, max_size=2),
    question=st.none() | TEXTS,
    waiting=st.just((Waiting(path='a/b', question='Send it?', tool='send'),)) | st.just(()),
    scripted=st.booleans(),
)


@settings(max_examples=30)
@given(RESULTS)
def test_everything_else_of_a_result_is_equal_after_the_round_trip(result: Result[Any]) -> None:
    assert again(result) == result


async def test_the_result_of_a_real_run_is_equal_after_the_round_trip() -> None:
    replies = [block('print(len(words))\n1 / 0'), block("display('x')\nfinal_answer(len(words))")]
    async with Agent(ScriptedModel(replies), output_type=int, journal='off') as agent:
        result = await agent.run('How many?', variables={'words': ['a', 'b']})
    assert Result.from_json(result.to_json(indent=2), output_type=int) == result
    assert json.loads(result.to_json())['output'] == 2


@pytest.mark.parametrize('ended', ['question', 'max_steps'])
def test_a_result_without_an_answer_has_no_output_of_any_type(ended: Ended) -> None:
    result = Result[Place](output=None, ended=ended, run_id='r')
    assert again(result, Place) == result


# Versions -------------------------------------------------------------------------------------------------------------

PLACE = Place(
    name='Rome', at=datetime(2026, 5, 4, 3, 2, tzinfo=UTC), price=Decimal('1.50'), picture=b'\xff', tags=frozenset('a')
)
FIRST = Result(
    output=PLACE,
    ended='answer',
    run_id='run-1',
    steps=(
        Step(
            number=1,
            reply=Reply(text='I look.', model='scripted:script', usage=Usage(requests=1, output_tokens=7)),
            code='places()',
            cell=Cell(
                value=(1, 2), text='(1, 2)', stdout='hello\n', displays=(Display(mime='image/png', data=b'\x89'),)
            ),
            calls=(ToolCall(id=1, tool='places', arguments={'n': 2}, ok=True, result='(1, 2)'),),
            seconds=0.5,
        ),
    ),
    usage=Usage(requests=1, output_tokens=7, cost=0.25),
    usage_by_model={'scripted:script': Usage(requests=1, output_tokens=7, cost=0.25)},
    seconds=0.75,
    messages=(Message(role='user', text='Where?'), Message(role='assistant', text='I look.')),
    variables={'n': Decimal(2)},
    scripted=True,
    agreement=Agreement(agreed=True, outputs=(PLACE, PLACE)),
)


def test_documents_of_older_versions_are_read() -> None:
    """To add a version, keep its file here for ever: `FIRST.to_json(indent=1)`."""
    for path in sorted(DOCUMENTS.glob('result-*.json')):
        assert Result.from_json(path.read_text('utf-8'), output_type=Place) == FIRST, path.name


def test_fields_of_a_later_version_are_ignored() -> None:
    document = json.loads(FIRST.to_json()) | {'mood': 'good'}
    document['steps'][0]['weather'] = 'fine'
    assert Result.from_json(json.dumps(document), output_type=Place) == FIRST


def test_a_document_of_a_newer_version_says_so() -> None:
    text = FIRST.to_json().replace('"version":1', '"version":99')
    with pytest.raises(DocumentError, match='version 99, and this Habilis reads versions up to 1: update Habilis'):
        Result.from_json(text)


# Bad text -------------------------------------------------------------------------------------------------------------


@each_case(
    ('text', 'words'),
    [
        ('', 'cannot read this result: not JSON'),
        ('{"habilis": "result"', 'cannot read this result: not JSON'),
        (b'\xff\xfe', 'cannot read this result'),
        ('[]', 'this JSON is no result that Habilis wrote'),
        ('{"output": 1}', 'this JSON is no result that Habilis wrote: it has no "habilis": "result"'),
        ('{"habilis": "conversation", "version": 1}', 'this JSON is no result'),
        ('{"habilis": "result"}', 'damaged: its "version" is None'),
        ('{"habilis": "result", "version": 1}', 'damaged: ended: Field required'),
        ('{"habilis": "result", "version": 1, "ended": "tired", "run_id": "r"}', 'damaged: ended: Input should be'),
        ('{"habilis": "result", "version": 1, "ended": "answer", "run_id": "r", "output": {"$": 1}}', 'unknown tag'),
    ],
)
def test_bad_text_gets_a_clear_error(text: str | bytes, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        Result.from_json(text, output_type=int)
    assert words in str(caught.value)
    assert '\n' not in str(caught.value)


def test_an_output_of_another_type_names_the_field() -> None:
    text = Result(output={'name': 'Rome'}, ended='answer', run_id='r').to_json()
    with pytest.raises(DocumentError, match=r'does not match Place: output\.at: Field required'):
        Result.from_json(text, output_type=Place)


def test_an_output_that_has_no_json_form_is_refused_by_name() -> None:
    with pytest.raises(DocumentError, match=r'this output cannot be written as JSON: .*object'):
        Result(output=[object()], ended='answer', run_id='r').to_json()


def test_the_json_is_readable() -> None:
    document = json.loads(replace(FIRST, output=Tree(name='x')).to_json())
    assert (document['habilis'], document['version']) == ('result', 1)
    assert document['output'] == {'name': 'x', 'inside': []}
    assert document['messages'][0] == {'role': 'user', 'text': 'Where?'}
