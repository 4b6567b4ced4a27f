"""Rules beyond the type: limits, keys that a record does not have, values that only look alike."""

import datetime
import enum
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

import pydantic
import pytest
import typing_extensions

from habilis.core.errors import ToolArgumentsError, ToolDefinitionError, ToolResultError
from habilis.tools import Toolbox, tool
from tests.tools.test_parameters import complaint, received


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Size(enum.Enum):
    SMALL = 1


class Half(enum.Enum):
    HALF = 0.5
    WHOLE = 1.0


class Roman(enum.IntEnum):
    """One that reads text by itself."""

    ONE = 1

    @classmethod
    def _missing_(cls, value: object) -> 'Roman | None':
        return cls.ONE if value == 'I' else None


@dataclass
class Place:
    street: str
    number: int = 0


@dataclass
class Square:
    side: int
    area: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.area = self.side**2


class Options(TypedDict):
    depth: int
    name: NotRequired[str]


class Loose(typing_extensions.TypedDict):
    __pydantic_config__ = pydantic.ConfigDict(extra='ignore')  # type: ignore[misc]

    depth: int


_Positive = Annotated[int, pydantic.Field(ge=1)]


def _even(value: int) -> int:
    if value % 2:
        raise AssertionError(f'{value} is odd')
    return value


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('hint', 'value', 'said'),
    [
        (_Positive, 0, 'Input should be greater than or equal to 1, got 0 (int)'),
        (cast('Any', _Positive) | None, 0, 'Input should be greater than or equal to 1, got 0 (int)'),
        (
            cast('Any', _Positive) | str,
            0,
            'Input should be greater than or equal to 1, got 0 (int)',
        ),
        (Annotated[str, pydantic.Field(min_length=2)], 'a', "String should have at least 2 characters, got 'a' (str)"),
        (Annotated[list[int], pydantic.Field(max_length=0)], [1], 'List should have at most 0 items after validation'),
        (Annotated[str, pydantic.Field(pattern='^a')], 'b', "String should match pattern '^a', got 'b' (str)"),
        (Annotated[int, pydantic.AfterValidator(_even)], 3, 'Assertion failed, 3 is odd, got 3 (int)'),
        (_Positive, '0', "expected int, got '0' (str)"),
        (Annotated[int | str, 'either'], 1.5, 'expected int | str, got 1.5 (float)'),
    ],
)
async def test_what_a_value_breaks_is_said(hint: Any, value: object, said: str) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        await received(hint, value)
    assert f'  x: {said}' in str(caught.value)


async def test_what_a_result_breaks_is_said() -> None:
    @tool
    def count() -> Annotated[int, pydantic.Field(ge=1)]:
        return 0

    with pytest.raises(ToolResultError, match='result: Input should be greater than or equal to 1, got 0'):
        await count.invoke()


# Keys -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('hint', 'value', 'said'),
    [
        (Place, {'street': 'a', 'numbr': 1}, "x.numbr: there is no such key; did you mean 'number'?"),
        (list[Options], [{'depth': 1, 'nam': 'n'}], "x[0].nam: there is no such key; did you mean 'name'?"),
        (Options, {'depth': 1, 'zzz': 'n'}, 'x.zzz: there is no such key\n'),
        (Square, {'side': 1, 'are': 1}, 'x.are: there is no such key'),
    ],
)
async def test_a_key_that_a_record_does_not_have_is_refused(hint: Any, value: object, said: str) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        await received(hint, value)
    assert f'  {said}' in str(caught.value)


async def test_a_record_may_allow_more_keys() -> None:
    assert await received(Loose, {'depth': 1, 'more': 2}) == {'depth': 1}


async def test_what_a_tool_returned_can_be_passed_on() -> None:
    @tool
    def make() -> Square:
        return Square(3)

    assert await received(Square, await make.invoke()) == Square(3)


# Values that look alike -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('hint', 'value'),
    [
        *[(Literal[1, 2], True), (Literal[1, 2], 1.0), (Literal['a', 1], True), (Literal[True], 1)],
        *[(Level, True), (Level, 1.0), (Level, '1'), (Size, True), (Size, 1.0), (Half, True)],
        *[(datetime.timedelta, True), (datetime.date, 0), (datetime.date, '0'), (datetime.time, 5)],
        *[(datetime.datetime, '5'), (datetime.datetime, 5), (datetime.datetime, 5.5), (datetime.datetime, '20261115')],
        (Place, {'street': 'a', 'number': True}),
    ],
)
async def test_a_value_that_only_looks_right_is_refused(hint: Any, value: object) -> None:
    with pytest.raises(ToolArgumentsError, match=r'(?m)^  x.*got'):
        await received(hint, value)


@pytest.mark.parametrize(
    ('hint', 'value', 'arrives'),
    [
        *[(Literal[1, 2], 1, 1), (Literal[True], True, True), (Level, 2, Level.HIGH), (Level, Level.LOW, Level.LOW)],
        *[(Half, 0.5, Half.HALF), (Half, 1, Half.WHOLE), (Roman, 'I', Roman.ONE), (Literal['1'], '1', '1')],
        (datetime.timedelta, 90, datetime.timedelta(seconds=90)),
        (datetime.date, datetime.date(2026, 1, 2), datetime.date(2026, 1, 2)),
        (datetime.time, '10:30', datetime.time(10, 30)),
    ],
)
async def test_what_is_right_still_arrives(hint: Any, value: object, arrives: object) -> None:
    got = await received(hint, value)
    assert got == arrives
    assert type(got) is type(arrives)


# What can be gone through ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize('hint', [Iterable[int], Collection[int], list[Iterable[int]]])
async def test_every_value_is_checked_before_the_call(hint: Any) -> None:
    def f(x: object) -> None:
        pytest.fail('it was called')

    f.__annotations__['x'] = hint
    value = [['a']] if hint == list[Iterable[int]] else ['a']
    assert "[0]: Input should be a valid integer, got 'a' (str)" in await complaint(f, value)


@pytest.mark.parametrize('hint', [Iterable[int], Collection[int], Collection])
@pytest.mark.parametrize('value', [[1, 2], (1, 2), {1, 2}])
async def test_what_can_be_gone_through_arrives_as_a_list(hint: Any, value: object) -> None:
    assert await received(hint, value) == [1, 2]


@pytest.mark.parametrize('hint', [Iterable[int], Collection[int]])
async def test_what_can_be_gone_through_is_returned_as_a_list(hint: Any) -> None:
    def f() -> object:
        return [1, 2]

    f.__annotations__['return'] = hint
    assert await tool(f).invoke() == [1, 2]


def _numbers() -> Iterator[int]:
    return iter([1])


def _count() -> Iterable[int]:
    yield 1


def _take(values: Iterator[int]) -> None: ...


@pytest.mark.parametrize(
    ('function', 'said'),
    [
        (_numbers, 'its result: the type Iterator .* use a list'),
        (_count, 'it is a generator; return a list'),
        (_take, "parameter 'values': the type Iterator .* use a list"),
    ],
)
def test_what_gives_its_values_only_once_is_no_type_for_a_tool(function: Callable[..., object], said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=f'cannot be a tool: {said}'):
        Toolbox([tool(name='f')(function)])
