"""Answers are checked against the type that was asked for, and what is wrong is said to the model."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from habilis.agent.context.output import MAX_PROBLEMS, OutputType, WrongOutput, as_text
from habilis.core.errors import AgentError
from tests.cases import each_case


@dataclass
class Person:
    name: str
    age: int


@dataclass
class Pupil(Person):
    school: 'School'


@dataclass
class School:
    town: str


class City(BaseModel):
    name: str
    people: int = Field(gt=0)
    twin: 'City | None' = None


class Movie(TypedDict):
    title: str
    year: int


class Colour(Enum):
    RED = 'red'
    BLUE = 'blue'


Mood = Literal['good', 'bad']


@each_case(
    ('kind', 'given', 'expected'),
    [
        (int, 42, 42),
        (int, '42', 42),
        (float, 1, 1.0),
        (str, 'x', 'x'),
        (bool, True, True),
        (list[str], ['a'], ['a']),
        (list[int], (1, 2), [1, 2]),
        (dict[str, int], {'a': 1}, {'a': 1}),
        (Person, {'name': 'Ann', 'age': 3}, Person('Ann', 3)),
        (list[Person], [{'name': 'Ann', 'age': 3}], [Person('Ann', 3)]),
        (City, {'name': 'Oslo', 'people': 7}, City(name='Oslo', people=7)),
        (Movie, {'title': 'M', 'year': 1931}, {'title': 'M', 'year': 1931}),
        (Mood, 'good', 'good'),
        (Colour, 'red', Colour.RED),
        (Optional[int], None, None),  # noqa: UP045
        (int | None, 3, 3),
        (date, '2024-03-02', date(2024, 3, 2)),
        (None, object, object),
        (Any, {'x': 1}, {'x': 1}),
    ],
)
def test_a_value_of_the_right_type_is_taken(kind: Any, given: object, expected: object) -> None:
    found = OutputType(kind).check(given)
    assert found == expected
    assert type(found) is type(expected)


@each_case(
    ('kind', 'given', 'parts'),
    [
        (int, 'many', ['final_answer needs int, not str ', "'many'", 'valid integer']),
        (int, None, ['needs int, not NoneType None']),
        (list[str], 'a', ['needs list[str], not str', 'valid list']),
        (list[int], [1, 'x', 3], ['1: Input should be a valid integer']),
        (Person, {'name': 'Ann'}, ["a dict {'name': str, 'age': int}", 'age: Field required']),
        (City, {'name': 'Oslo', 'people': -1}, ['people: Input should be greater than 0']),
        (Mood, 'so so', ["needs Literal['good', 'bad']", "'good' or 'bad'"]),
        (str, 42, ['needs str, not int 42', 'valid string']),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_is_wrong(kind: Any, given: object, parts: list[str]) -> None:
    with pytest.raises(WrongOutput) as refused:
        OutputType(kind).check(given)
    for part in parts:
        assert part in str(refused.value)
    assert 'https://' not in str(refused.value)


@each_case(
    ('kind', 'given', 'found'),
    [
        (bool, 'yes', "needs bool, not str 'yes'. Input should be a valid boolean"),
        (bool, 1, 'not int 1. '),
        (int, True, 'needs int, not bool True. Input should be a valid integer'),
        (float, False, 'not bool False. '),
        (list[bool], [True, 'no'], '1: Input should be a valid boolean'),
        (list[int], [1, True], '1: Input should be a valid integer'),
        (dict[str, float], {'a': True}, 'a: Input should be a valid number'),
        (Person, {'name': 'Ann', 'age': True}, 'age: Input should be a valid integer'),
        (int | None, True, 'Input should be a valid integer'),
    ],
)
def test_truth_values_are_not_numbers_or_words(kind: Any, given: object, found: str) -> None:
    with pytest.raises(WrongOutput) as refused:
        OutputType(kind).check(given)
    assert found in str(refused.value)


@each_case(
    ('kind', 'given', 'expected'),
    [
        (list[int], ['1', 2], [1, 2]),
        (int, 3.0, 3),
        (float, '2.5', 2.5),
        (set[int], [1, 1], {1}),
        (tuple[int, str], [1, 'a'], (1, 'a')),
        (bool | str, 'yes', 'yes'),
        (bool | int, 1, 1),
        (Any, True, True),
    ],
)
def test_what_means_the_same_is_converted(kind: Any, given: object, expected: object) -> None:
    found = OutputType(kind).check(given)
    assert found == expected
    assert type(found) is type(expected)


@dataclass
class Picky:
    a: int

    def __post_init__(self) -> None:
        _ = {1: 'one'}[self.a]


class Divided(BaseModel):
    a: int

    @field_validator('a')
    @classmethod
    def _check(cls, value: int) -> int:  # pyright: ignore[reportUnusedFunction]
        return 1 // value


@pytest.mark.parametrize(('kind', 'wrong', 'why'), [(Picky, -1, 'KeyError: -1'), (Divided, 0, 'ZeroDivisionError')])
def test_a_check_of_the_users_own_may_raise_anything(kind: Any, wrong: int, why: str) -> None:
    with pytest.raises(WrongOutput, match=why):
        OutputType(kind).check({'a': wrong})
    with pytest.raises(WrongOutput, match='The answer must be a dict'):
        OutputType(kind).check_text(f'{{"a": {wrong}}}')
    assert OutputType(kind).check_text('{"a": 1}').a == 1  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


class Mute:
    def __str__(self) -> str:
        raise KeyError

    __repr__ = __str__


def test_a_value_is_shown_in_full_or_shortened() -> None:
    assert as_text('a\nb') == 'a\nb'
    assert as_text('a', repr) == "'a'"
    assert as_text(10**5000) == f'1{"0" * 19}…{"0" * 20} (5,001 digits)'
    assert as_text([10**5000]) == f'[1{"0" * 19}…{"0" * 20} (5,001 digits)]'
    assert 'Mute' in as_text(Mute())


def test_a_value_that_cannot_be_written_out_is_refused_like_any_other() -> None:
    with pytest.raises(WrongOutput, match=r'needs str, not int 10+…0+ \(5,001 digits\)'):
        OutputType(str).check(10**5000)


def test_of_many_problems_a_few_are_listed_and_long_values_are_shortened() -> None:
    with pytest.raises(WrongOutput) as refused:
        OutputType(list[int]).check(['x' * 50] * 1000)
    assert str(refused.value).count('valid integer') == MAX_PROBLEMS
    assert len(str(refused.value)) < 1000


@each_case(
    ('kind', 'name'),
    [
        (None, 'any value'),
        (int, 'int'),
        (list[str], 'list[str]'),
        (dict[str, list[int]], 'dict[str, list[int]]'),
        (tuple[int, ...], 'tuple[int, ...]'),
        (int | None, 'int | None'),
        (Optional[str], 'str | None'),  # noqa: UP045
        (Mood, "Literal['good', 'bad']"),
        (Colour, "Literal['red', 'blue']"),
        (Annotated[int, Field(gt=0)], 'int'),
        (Any, 'Any'),
        (date, 'date'),
        (Person, "a dict {'name': str, 'age': int}"),
        (Pupil, "a dict {'name': str, 'age': int, 'school': {'town': str}}"),
        (list[Person], "list[{'name': str, 'age': int}]"),
        (Movie, "a dict {'title': str, 'year': int}"),
    ],
)
def test_the_type_is_named_so_that_a_model_understands_it(kind: Any, name: str) -> None:
    assert OutputType(kind).name == name


def test_a_type_that_holds_itself_can_be_named() -> None:
    assert OutputType(City).name.startswith("a dict {'name': str, 'people': int, 'twin': {'name': str,")
    assert len(OutputType(City).name) < 300


def test_a_type_that_cannot_be_checked_is_refused_when_it_is_given() -> None:
    class Socket:
        pass

    with pytest.raises(AgentError, match=r'Socket.* cannot be an output type; use plain data'):
        OutputType(Socket)


# Answers in words -----------------------------------------------------------------------------------------------------


@each_case(
    ('kind', 'text', 'expected'),
    [
        (None, 'The answer is 42.', 'The answer is 42.'),
        (str, '42', '42'),
        (int, '42', 42),
        (int, ' 42\n', 42),
        (int, '`42`', 42),
        (int, '**42**', 42),
        (int, 'The answer is:\n42', 42),
        (float, '3.5', 3.5),
        (bool, 'True', True),
        (bool, 'true', True),
        (bool, 'yes', True),
        (list[int], '[1, 2]', [1, 2]),
        (list[int], '1, 2', [1, 2]),
        (list[int], '```json\n[1,2]\n```', [1, 2]),
        (list[int], 'Here you are:\n\n```json\n[1,2]\n```\nDone.', [1, 2]),
        (list[int], '```\n[1,2]\n```', [1, 2]),
        (list[int], '```python\n[1, 2]\n```', [1, 2]),
        (list[str], "['a', 'b']", ['a', 'b']),
        (Person, '{"name": "Ann", "age": 3}', Person('Ann', 3)),
        (Person, "{'name': 'Ann', 'age': 3}", Person('Ann', 3)),
        (City, '```json\n{"name": "Oslo", "people": 7}\n```', City(name='Oslo', people=7)),
        (Mood, 'good', 'good'),
        (Mood, '"good"', 'good'),
        (Colour, 'blue', Colour.BLUE),
        (str | None, 'Paris', 'Paris'),
        (str | None, '42', '42'),
        (int | None, 'null', None),
        (int | None, 'None', None),
        (date, '2024-03-02', date(2024, 3, 2)),
    ],
)
def test_an_answer_in_words_may_write_the_value_out(kind: Any, text: str, expected: object) -> None:
    found = OutputType(kind).check_text(text)
    assert found == expected
    assert type(found) is type(expected)


@each_case(
    ('kind', 'text'),
    [
        (int, 'The answer is 42.'),
        (int, ''),
        (int, '4 2'),
        (int, '```json\n[1, 2]\n```'),
        (list[int], 'one, two'),
        (Person, '{"name": "Ann"}'),
        (Mood, 'The mood is good.'),
        (int, '9' * 5000 + 'x'),
        (int, '(' * 5000),
        (list[int], '[' * 100_000),
    ],
)
def test_words_that_are_no_such_value_are_sent_back(kind: Any, text: str) -> None:
    output = OutputType(kind)
    with pytest.raises(WrongOutput) as refused:
        output.check_text(text)
    assert str(refused.value) == (f'The answer must be {output.name}.')


@given(st.text())
def test_any_words_are_an_answer_or_are_sent_back(text: str) -> None:
    assert OutputType(None).check_text(text) == text
    with suppress(WrongOutput):
        assert isinstance(OutputType(list[int]).check_text(text), list)
