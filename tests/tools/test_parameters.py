"""Arguments: what fits arrives as it was sent, what does not is explained, and the function is not called."""

import datetime
import enum
import inspect
import json
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import pydantic
import pytest
import typing_extensions
from hypothesis import given

from habilis.core.errors import ToolArgumentsError
from habilis.tools import Toolbox, tool
from tests.cases import each_case
from tests.tools.signatures import Sample, samples


class Color(enum.Enum):
    """Two colours."""

    RED = 'red'
    BLUE = 'blue'


@dataclass
class Point:
    """A place."""

    x: int
    y: float = 0.0
    tags: list[str] = field(default_factory=list[str])


class Page(pydantic.BaseModel):
    """A page."""

    url: str
    size: int = 0


class Options(TypedDict):
    """With a key that may be absent."""

    depth: int
    name: NotRequired[str]


class NewOptions(typing_extensions.TypedDict):
    """The other `TypedDict`."""

    depth: int


class Pair(NamedTuple):
    """Two things."""

    left: int
    right: str


@dataclass
class Deep:
    """One inside the other."""

    below: 'Deep | None' = None


async def received(hint: Any, value: object) -> object:
    """What a tool with one parameter of this type gets for a value."""
    got: list[object] = []

    def take(x: object) -> None:
        got.append(x)

    take.__annotations__['x'] = hint
    await tool(take).invoke((value,))
    return got[0]


async def complaint(function: Callable[..., object], *args: object, **kwargs: object) -> str:
    """Why a call is refused. The function must not run."""
    with pytest.raises(ToolArgumentsError) as caught:
        await tool(function).invoke(args, kwargs)
    return str(caught.value)


def never(x: int, flag: bool = True, *, name: str = '') -> None:
    pytest.fail('it was called')


# What arrives ---------------------------------------------------------------------------------------------------------


@given(samples())
def test_any_call_that_python_takes_arrives_unchanged(sample: Sample) -> None:
    expected = sample.function(*sample.args, **sample.kwargs)
    bound = tool(sample.function).validate(sample.args, sample.kwargs)
    arrived = sample.function(*bound.args, **bound.kwargs)
    assert repr(arrived) == repr(expected), sample.source


@given(samples())
def test_a_call_by_name_arrives_unchanged_too(sample: Sample) -> None:
    expected = sample.function(*sample.args, **sample.kwargs)
    made = inspect.signature(sample.function).bind(*sample.args, **sample.kwargs)
    bound = tool(sample.function).validate_named(made.arguments)
    assert repr(sample.function(*bound.args, **bound.kwargs)) == repr(expected), sample.source


async def test_a12_falsy_values_arrive_unchanged() -> None:
    @tool
    def f(n: int, flag: bool = True, s: str = 'x', items: list[int] | None = None) -> list[object]:
        return [n, flag, s, items]

    assert await f.invoke((0,), {'flag': False, 's': '', 'items': []}) == [0, False, '', []]


@pytest.mark.parametrize(
    ('hint', 'value', 'arrives'),
    [
        (int, 5, 5),
        (float, 3, 3.0),
        (str | None, None, None),
        (int | str, '5', '5'),
        (int | str, 5, 5),
        (list[int], (1, 2), [1, 2]),
        (tuple[int, str], [1, 'a'], (1, 'a')),
        (set[int], [1, 1], {1}),
        (dict[str, int], {'a': 1}, {'a': 1}),
        (Literal['a', 'b'], 'b', 'b'),
        (Color, 'blue', Color.BLUE),
        (Color | None, 'red', Color.RED),
        (list[Color], ['red'], [Color.RED]),
        (Point, {'x': 1}, Point(1)),
        (list[Point], [{'x': 1, 'y': 2, 'tags': ['t']}], [Point(1, 2.0, ['t'])]),
        (Page, {'url': 'u', 'size': 3}, Page(url='u', size=3)),
        (Options, {'depth': 1}, {'depth': 1}),
        (Options | None, {'depth': 1, 'name': 'n'}, {'depth': 1, 'name': 'n'}),
        (Annotated[list[Options], 'many'], [{'depth': 1}], [{'depth': 1}]),
        (NewOptions, {'depth': 1}, {'depth': 1}),
        (Pair, (1, 'a'), Pair(1, 'a')),
        (datetime.datetime, '2026-11-15T10:00:00', datetime.datetime(2026, 11, 15, 10)),  # noqa: DTZ001
        (datetime.date, '2026-11-15', datetime.date(2026, 11, 15)),
        (Decimal, '1.5', Decimal('1.5')),
        (uuid.UUID, str(uuid.UUID(int=1)), uuid.UUID(int=1)),
        (Path, 'a/b', Path('a/b')),
        (Annotated[int, pydantic.Field(ge=1)], 1, 1),
        (Sequence[int], [1], [1]),
        (Mapping[str, int], {'a': 1}, {'a': 1}),
        (bytes, b'x', b'x'),
        (object, {'any': ('thing',)}, {'any': ('thing',)}),
        (Any, '5', '5'),
    ],
)
async def test_a_value_that_fits_its_hint_arrives(hint: Any, value: object, arrives: object) -> None:
    got = await received(hint, value)
    assert got == arrives
    assert type(got) is type(arrives)


@pytest.mark.parametrize(
    ('hint', 'value'),
    [
        (int, '5'),
        (int, True),
        (int, 5.0),
        (int, None),
        (float, '1.5'),
        (float, True),
        (bool, 1),
        (bool, 'yes'),
        (str, 5),
        (str, b'x'),
        (bytes, 'x'),
        (list[int], ['1']),
        (list[int], {'a': 1}),
        (dict[str, int], {'a': '1'}),
        (dict[str, int], {1: 1}),
        (tuple[int, str], [1]),
        (int | None, '5'),
        (int | bool, '5'),
        (Literal['a'], 'b'),
        (Literal[1], '1'),
        (Color, 'green'),
        (Point, {'x': '1'}),
        (Point, {}),
        (Point, 'text'),
        (Page, {'size': 1}),
        (Options, {'depth': '1'}),
        (Options, {}),
        (NewOptions, {'depth': '1'}),
        (datetime.datetime, 'soon'),
        (Annotated[int, pydantic.Field(ge=1)], 0),
    ],
)
async def test_a_value_that_does_not_fit_is_refused(hint: Any, value: object) -> None:
    with pytest.raises(ToolArgumentsError, match=r'(?m)^  x'):
        await received(hint, value)


async def test_a_user_may_ask_for_conversion() -> None:
    assert await received(Annotated[int, pydantic.Strict(False)], '5') == 5


async def test_a_default_is_right_whatever_the_hint_says() -> None:
    def f(x: object = None) -> object:
        return x

    f.__annotations__['x'] = str
    assert await tool(f).invoke() is None
    assert await tool(f).invoke((None,)) is None


async def test_a_default_that_looks_like_a_schema_is_not_touched() -> None:
    trap: dict[str, object] = {'type': 'int'}

    @dataclass
    class Trap:
        x: Annotated[dict[str, object], 'trap'] = field(default_factory=lambda: trap)

    got = await received(Trap, {})
    assert isinstance(got, Trap)
    assert got.x == {'type': 'int'}


def test_hints_of_arguments_without_end_hold_for_each() -> None:
    @tool
    def f(*numbers: int, **names: str) -> None: ...

    bound = f.validate((1, 2), {'a': 'x'})
    assert (bound.args, bound.kwargs) == ((1, 2), {'a': 'x'})
    with pytest.raises(ToolArgumentsError) as caught:
        f.validate((1, 'two'), {'a': 5})
    assert "*numbers[1]: expected int, got 'two' (str)" in str(caught.value)
    assert 'a: expected str, got 5 (int)' in str(caught.value)


# What is said ---------------------------------------------------------------------------------------------------------


async def test_a9_each_problem_is_one_line_with_what_came_and_what_is_expected() -> None:
    said = await complaint(never, '5', flag=1, name=b'x')
    assert said.splitlines() == [
        'never was not called: invalid arguments:',
        "  x: expected int, got '5' (str)",
        '  flag: expected bool, got 1 (int)',
        "  name: expected str, got b'x' (bytes)",
        "never(x: int, flag: bool = True, *, name: str = '') -> None",
    ]


async def test_a_missing_argument_is_named() -> None:
    assert '  x: missing, expected int\n' in await complaint(never)


async def test_an_unknown_argument_is_named_with_the_nearest() -> None:
    assert "  flags: there is no such parameter; did you mean 'flag'?\n" in await complaint(never, 1, flags=True)
    assert '  zzz: there is no such parameter\n' in await complaint(never, 1, zzz=True)


async def test_an_argument_given_twice_is_named() -> None:
    assert '  x: given twice, by position and by name\n' in await complaint(never, 1, x=2)


async def test_too_many_values_are_counted() -> None:
    assert '  3 values given by position, but it takes 2\n' in await complaint(never, 1, True, 3)


async def test_a_parameter_by_position_only_is_explained() -> None:
    def f(x: int, /) -> None: ...

    assert '  x: is positional-only\n' in await complaint(f, x=1)


async def test_the_place_inside_a_value_is_named() -> None:
    def f(points: list[Point]) -> None: ...

    said = await complaint(f, [{'x': 1}, {'x': 'one'}, {}])
    assert "  points[1].x: Input should be a valid integer, got 'one' (str)\n" in said
    assert '  points[2].x: Field required\n' in said


async def test_the_values_of_an_enum_are_spelled_out() -> None:
    def f(color: Color) -> None: ...

    assert "  color: expected Literal['red', 'blue'], got 'green' (str)\n" in await complaint(f, 'green')


async def test_a_union_is_one_line() -> None:
    def f(x: int | list[str]) -> None: ...

    assert '  x: expected int | list[str], got 1.5 (float)\n' in await complaint(f, 1.5)


async def test_a_huge_value_does_not_make_a_huge_message() -> None:
    assert len(await complaint(never, 'x' * 1_000_000)) < 500
    assert len(await complaint(never, [['x' * 100] * 100] * 100)) < 500


async def test_a_value_that_spans_lines_stays_on_one() -> None:
    assert len((await complaint(never, ['a\nb'])).splitlines()) == 3


async def test_a_value_nested_without_end_is_refused() -> None:
    nested: dict[str, object] = {'below': None}
    for _ in range(20_000):
        nested = {'below': nested}

    def f(x: Deep) -> None: ...

    assert '  x' in await complaint(f, nested)


# For models that call functions ---------------------------------------------------------------------------------------


def test_the_schema_of_the_parameters_is_json_schema() -> None:
    @tool
    def f(query: Annotated[str, 'what to look for'], point: Point, limit: int = 5, *more: int) -> None: ...

    schema = f.parameters
    properties = schema['properties']
    assert isinstance(properties, dict)
    assert properties['query'] == {'type': 'string', 'description': 'what to look for'}
    assert properties['limit'] == {'type': 'integer', 'default': 5}
    assert properties['point'] == {'$ref': '#/$defs/Point'}
    assert properties['more'] == {'type': 'array', 'items': {'type': 'integer'}}
    assert (schema['required'], schema['additionalProperties']) == (['query', 'point'], False)
    assert isinstance(schema['$defs'], dict)


def test_arguments_by_name_fill_what_is_given_by_position() -> None:
    @tool
    def f(a: int, b: int = 2, *more: int, c: int = 3, **rest: int) -> None: ...

    bound = f.validate_named({'a': 1, 'more': [7, 8], 'z': 9})
    assert (bound.args, bound.kwargs) == ((1, 2, 7, 8), {'z': 9})
    with pytest.raises(ToolArgumentsError, match='more: expected a list'):
        f.validate_named({'a': 1, 'more': 5})


def test_a_gap_before_one_by_position_is_filled() -> None:
    @tool
    def f(a: int = 1, b: int = 2, c: int = 3, /, d: int = 4) -> None: ...

    bound = f.validate_named({'b': 5, 'd': 6})
    assert (bound.args, bound.kwargs) == ((1, 5), {'d': 6})
    assert f.changed(f.validate((), {}), {'c': 7}).args == (1, 2, 7)


@each_case(
    ('hint', 'value', 'arrives'),
    [
        (dict[int, str], {'1': 'a'}, {1: 'a'}),
        (bytes, 'abc', b'abc'),
        (list[dict[float, bytes]], [{'1.5': 'é'}], [{1.5: 'é'.encode()}]),
        (str | bytes, 'abc', 'abc'),
        (tuple[int, Color], [1, 'red'], (1, Color.RED)),
    ],
)
def test_what_comes_as_json_is_read_as_json(hint: Any, value: object, arrives: object) -> None:
    def f(x: object) -> None: ...

    f.__annotations__['x'] = hint
    assert tool(f).validate_json({'x': value}).arguments == {'x': arrives}


@each_case(('hint', 'value'), [(int, '5'), (bytes, 5), (dict[int, str], {'a': 'b'}), (bool, 1), (bytes, [object()])])
def test_json_is_checked_as_strictly(hint: Any, value: object) -> None:
    def f(x: object) -> None: ...

    f.__annotations__['x'] = hint
    with pytest.raises(ToolArgumentsError, match=r'(?m)^  x'):
        tool(f).validate_json({'x': value})


async def test_a_model_may_call_with_what_json_has() -> None:
    @tool(side='model')
    def f(names: dict[int, str], data: bytes) -> object:
        return [names, data]

    assert await Toolbox([f]).call_for_model('f', {'names': {'1': 'a'}, 'data': 'x'}) == [{1: 'a'}, b'x']


def test_the_schema_of_the_parameters_is_json_whatever_the_defaults() -> None:
    @dataclass
    class Range:
        upper: float = math.inf

    @tool
    def f(a: Range, b: float = math.nan, c: float = 1.5) -> None: ...

    assert json.loads(json.dumps(f.parameters, allow_nan=False)) == f.parameters
    properties = f.parameters['properties']
    assert isinstance(properties, dict)
    assert (properties['b'], properties['c']) == ({'type': 'number'}, {'type': 'number', 'default': 1.5})


@pytest.mark.parametrize('arguments', [{}, {'x': 1, 'nope': 2}, {'x': '1'}])
def test_wrong_arguments_by_name_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ToolArgumentsError, match='never was not called'):
        tool(never).validate_named(arguments)
