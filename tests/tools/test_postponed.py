"""The same with hints that are text until they are needed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from habilis.core.errors import ToolArgumentsError
from habilis.tools import tool


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
