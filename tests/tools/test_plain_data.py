"""Results as plain data."""

import datetime
import enum
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given

from habilis.core.errors import ToolResultError
from habilis.tools import tool
from habilis.tools.plain_data import to_plain
from tests.cases import each_case
from tests.core.plain import plain as plain_data
from tests.core.plain import shape


class Color(enum.Enum):
    RED = 'red'


@dataclass(frozen=True)
class Hit:
    url: str
    color: Color = Color.RED


class Page(pydantic.BaseModel):
    hits: list[Hit]
    kind: str = pydantic.Field(alias='type')


class Pair(NamedTuple):
    left: int
    right: Color


@dataclass
class Made:
    """With a field that is no argument."""

    x: int
    double: int = field(init=False)

    def __post_init__(self) -> None:
        self.double = self.x * 2


@dataclass
class Price:
    """What it makes of its field must not be made twice."""

    net: float

    def __post_init__(self) -> None:
        self.net = round(self.net * 1.19, 2)


@dataclass
class Animal:
    name: str


@dataclass
class Dog(Animal):
    tricks: int


@dataclass
class Chain:
    below: 'Chain | None' = None


@given(plain_data)
def test_plain_data_stays_as_it_is(value: object) -> None:
    assert shape(to_plain(value)) == shape(value)


@each_case(
    ('value', 'plain'),
    [
        (Color.RED, 'red'),
        (Hit('u'), {'url': 'u', 'color': 'red'}),
        ([Hit('u')], [{'url': 'u', 'color': 'red'}]),
        (Page(hits=[Hit('u')], type='x'), {'hits': [{'url': 'u', 'color': 'red'}], 'type': 'x'}),
        (Pair(1, Color.RED), (1, 'red')),
        ({Color.RED: (Color.RED,)}, {'red': ('red',)}),
        (PurePosixPath('a/b'), 'a/b'),
        ({Hit('u')}, [{'url': 'u', 'color': 'red'}]),
        (frozenset({Color.RED}), frozenset({'red'})),
        (OrderedDict([('a', 1)]), {'a': 1}),
        (deque([1]), [1]),
        (range(2), [0, 1]),
        ({'a': 1}.keys(), ['a']),
        (datetime.date(2026, 1, 1), datetime.date(2026, 1, 1)),
    ],
)
def test_everything_else_with_a_plain_form_gets_it(value: object, plain: object) -> None:
    made = to_plain(value)
    assert made == plain
    assert type(made) is type(plain)


def _count() -> Iterator[int]:
    yield 1


async def _count_later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ('value', 'complaint'),
    [
        (object(), 'it is not plain data but an object'),
        ([1, {'a': object()}], r"\[1\]\['a'\] is not plain data"),
        (_count(), 'it is a generator: return a list instead'),
        (_count_later(), 'it is an async generator: return a list instead'),
        (int, 'it is not plain data but a type'),
        (Hit, 'it is not plain data but a type'),
    ],
)
async def test_what_has_no_plain_form_is_the_tools_error(value: object, complaint: str) -> None:
    def give() -> object:
        return value

    with pytest.raises(ToolResultError, match=f'(?s)give returned .*which cannot go into the sandbox: {complaint}'):
        await tool(give).invoke()


async def test_a_result_that_contains_itself_is_the_tools_error() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ToolResultError, match='contains itself'):
        await tool(name='give')(lambda: loop).invoke()


async def test_a10_a_wrong_value_inside_a_dataclass_is_found() -> None:
    @tool
    def find() -> list[Hit]:
        return [Hit('u'), Hit(url=5)]  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    with pytest.raises(ToolResultError, match=r'result\[1\]\.url: Input should be a valid string, got 5 \(int\)'):
        await find.invoke()


async def test_a_dict_may_stand_for_a_declared_dataclass() -> None:
    def find() -> object:
        return [{'url': 'u'}]

    find.__annotations__['return'] = list[Hit]
    assert await tool(find).invoke() == [{'url': 'u', 'color': 'red'}]


async def test_a_dataclass_with_fields_that_are_no_arguments_can_be_returned() -> None:
    @tool
    def make() -> Made:
        return Made(2)

    assert await make.invoke() == {'x': 2, 'double': 4}


async def test_an_instance_is_not_made_a_second_time() -> None:
    @tool
    def price() -> Price:
        return Price(100.0)

    @tool
    def prices() -> list[Price]:
        return [Price(100.0)]

    assert await price.invoke() == {'net': 119.0}
    assert await prices.invoke() == [{'net': 119.0}]


async def test_a_dict_for_a_declared_dataclass_is_made_one_once() -> None:
    def price() -> object:
        return {'net': 100.0}

    price.__annotations__['return'] = Price
    assert await tool(price).invoke() == {'net': 119.0}


async def test_an_instance_of_a_subclass_keeps_its_fields() -> None:
    @tool
    def pet() -> Animal:
        return Dog('Rex', 3)

    @tool
    def pets() -> set[Hit]:
        return {Hit('u')}

    assert await pet.invoke() == {'name': 'Rex', 'tricks': 3}
    assert await pets.invoke() == [{'url': 'u', 'color': 'red'}]


async def test_something_else_for_a_declared_dataclass_is_the_tools_error() -> None:
    def pet() -> object:
        return Hit('u')

    pet.__annotations__['return'] = Animal
    with pytest.raises(ToolResultError, match='result: expected Animal, got Hit'):
        await tool(pet).invoke()


async def test_dataclasses_inside_each_other_are_checked() -> None:
    @tool
    def chain(wrong: bool) -> Chain:
        return Chain(Chain(Chain(5 if wrong else None)))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    assert await chain.invoke((False,)) == {'below': {'below': {'below': None}}}
    with pytest.raises(ToolResultError, match=r'result\.below\.below\.below: .*got 5 \(int\)'):
        await chain.invoke((True,))


async def test_an_instance_that_contains_itself_is_the_tools_error() -> None:
    @tool
    def loop() -> Chain:
        made = Chain()
        made.below = made
        return made

    with pytest.raises(ToolResultError, match='cyclic'):
        await loop.invoke()


async def test_a_function_that_declares_none_must_return_none() -> None:
    def f() -> object:
        return 5

    f.__annotations__['return'] = None
    with pytest.raises(ToolResultError, match='expected None, got 5'):
        await tool(f).invoke()
