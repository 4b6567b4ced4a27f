"""Tools that people wrote."""

from dataclasses import replace
from pathlib import Path

import pytest

from habilis.core.errors import ForgeError, ToolDefinitionError, ToolExists, ToolNotFound
from habilis.forge.library.additions import add_tool, function_name
from habilis.forge.library.library import Library
from tests.forge.samples import double, fourfold, tool


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / 'library')


async def test_a_tool_of_a_person_is_kept_with_its_score(library: Library) -> None:
    made = await add_tool(library, double())
    assert (made.version, made.origin, made.tests) == (1, 'user', 1)
    assert made.mutants == made.killed > 0
    with pytest.raises(ToolExists, match='habilis tools edit double FILE'):
        await add_tool(library, double(factor=3))
    await add_tool(library, replace(fourfold(), uses={}))
    assert library.manifest('fourfold').uses == {'double': 1}


async def test_what_does_not_hold_is_refused(library: Library) -> None:
    with pytest.raises(ForgeError, match=r'(?s)the tests of double fail.*got 9, expected 6'):
        await add_tool(library, replace(double(factor=3), tests=double().tests))
    with pytest.raises(ForgeError, match='does nothing'):
        await add_tool(library, tool('idle', 'return 1'))
    with pytest.raises(ToolNotFound, match='double'):
        await add_tool(library, fourfold())
    with pytest.raises(ToolDefinitionError, match='hide'):
        await add_tool(library, double('len'))
    assert library.names() == []


async def test_weak_tests_are_refused_unless_a_note_says_why(library: Library) -> None:
    body = 'if number > 10 and number < 20:\n        return 1\n    return number + 2'
    weak = tool('weak', body, 'from tool import weak\n\n\ndef test_it() -> None:\n    assert weak(1) == 3\n')
    with pytest.raises(ForgeError, match=r'(?s)notice only \d of \d+ wrong variants.*--note.*line \d'):
        await add_tool(library, weak)
    assert (await add_tool(library, weak, note='the rest is trivial')).note == 'the rest is trivial'


def test_the_function_of_a_file() -> None:
    assert function_name('def a(): ...\ndef _b(): ...') == 'a'
    assert function_name('def a(): ...\ndef b(): ...', 'b') == 'b'
    for code, problem in (('x = 1', 'no public'), ('def a(): ...\ndef b(): ...', 'has a, b'), ('def', 'not Python')):
        with pytest.raises(ForgeError, match=problem):
            function_name(code)
