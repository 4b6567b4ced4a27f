"""The same with hints that are text until they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import pytest
import typing_extensions

from habilis.core.errors import ToolArgumentsError, ToolDefinitionError
from habilis.tools import Toolbox, tool

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar('T')


@dataclass
class Place:
    """Somewhere."""

    name: str
    inside: Place | None = None


async def test_postponed_hints_are_resolved() -> None:
    @tool
    def where(place: Place, depth: int = 1) -> list[Place]:
        return [place] * depth

    assert where.signature == '(place: Place, depth: int = 1) -> list[Place]'
    assert await where.invoke(({'name': 'a', 'inside': {'name': 'b'}},)) == [
        {'name': 'a', 'inside': {'name': 'b', 'inside': None}}
    ]
    with pytest.raises(ToolArgumentsError, match=r'place\.inside\.name: Field required'):
        await where.invoke(({'name': 'a', 'inside': {}},))


async def test_postponed_hints_may_mean_types_of_the_function_around() -> None:
    @dataclass
    class Local:
        x: int

    @tool
    def take(value: Local) -> int:
        return value.x

    assert await take.invoke(({'x': 4},)) == 4


async def test_types_inside_each_other_may_all_be_of_the_function_around() -> None:
    class Mark(typing_extensions.TypedDict):
        color: str

    class Spot(NamedTuple):
        mark: Mark
        size: int

    @dataclass
    class Base:
        marks: list[Mark]

    @dataclass
    class Inner(Base):
        spot: Spot | None = None

    @dataclass
    class Outer:
        inner: Inner
        more: list[Outer] | None = None

    @tool
    def turn(outer: Outer) -> Outer:
        return outer

    stubs = Toolbox([turn]).stubs()
    assert 'class Outer(TypedDict):\n    inner: Inner\n    more: list[Outer] | None  # default None' in stubs
    assert 'spot: tuple[Mark, int] | None' in stubs
    value: object = {'inner': {'marks': [{'color': 'red'}], 'spot': [{'color': 'red'}, 1]}, 'more': []}
    expected: object = {'inner': {'marks': [{'color': 'red'}], 'spot': ({'color': 'red'}, 1)}, 'more': []}
    assert await turn.invoke((value,)) == expected
    with pytest.raises(ToolArgumentsError, match=r'outer\.inner\.marks\[0\]\.color: Input should be a valid string'):
        await turn.invoke(({'inner': {'marks': [{'color': 5}]}},))


def test_an_undefined_name_inside_a_type_is_reported_when_the_tool_is_created() -> None:
    @dataclass
    class Where:
        path: Path

    @tool
    def take(where: Where) -> None: ...

    @tool
    def give() -> list[Where]:
        return []

    with pytest.raises(ToolDefinitionError, match=r"take cannot be a tool: parameter 'where': .*'Path' is not defined"):
        take.check()
    with pytest.raises(ToolDefinitionError, match=r"give cannot be a tool: its result: .*'Path' is not defined"):
        Toolbox([give])


async def test_a_generic_type_of_the_function_around_is_known_too() -> None:
    @dataclass
    class Inner:
        x: int

    @dataclass
    class Box(Generic[T]):
        content: T
        inner: Inner

    @tool
    def take(box: Box[int]) -> int:
        return box.content + box.inner.x

    assert await take.invoke(({'content': 1, 'inner': {'x': 2}},)) == 3
