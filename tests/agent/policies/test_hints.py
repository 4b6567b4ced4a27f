"""One sentence about a cell that went wrong or showed nothing."""

from dataclasses import replace
from typing import Any

import pytest

from habilis.agent import Agent
from habilis.agent.policies import SeenCell
from habilis.agent.policies.hints import hint_for, uncalled
from habilis.models import ScriptedModel
from habilis.sandbox import ToolCall
from habilis.sandbox.contract import Cell, CellError, ErrorKind
from tests.agent.scripts import block
from tests.cases import each_case

NAMES = ['search', 'search_files', 'total_price', 'rows']


def hint(code: str, cell: Cell, **more: Any) -> str:
    return hint_for(SeenCell(code=code, cell=cell, names=more.pop('names', NAMES), **more))


def failed(type_: str, message: str, kind: ErrorKind = 'exception') -> Cell:
    return Cell(error=CellError(kind=kind, type=type_, message=message))


def test_a_function_that_was_defined_but_not_called() -> None:
    code = 'import math\n\ndef area(r):\n    """Of a circle."""\n    return math.pi * r ** 2\n'
    assert hint(code, Cell()) == 'You defined area but did not call it. Call it and print the result.'


def test_several_of_them() -> None:
    assert 'You defined one, two but' in hint('def one(): pass\nasync def two(): one.x\n', Cell())


@each_case(
    ('code', 'expected'),
    [
        ('def f(): pass', ['f']),
        ('async def f(): pass', ['f']),
        ('X = 3\nclass A: pass\ndef f(): return X', ['f']),
        ('def f(): return g()\ndef g(): return 1', ['f']),
        ('def f(n): return f(n - 1)', ['f']),
        ('def f(n): return f(n - 1)\nx = f(1)', []),
        ('def f(): pass\nf()', []),
        ('def f(): pass\nx = f()', []),
        ('class A: pass', []),
        ('x = 1', []),
        ('', []),
        ('def f(:', []),
        ('\0', []),
        ('(' * 5000, []),
        ("import re\ndef f(): return re.compile('\\d')", ['f']),
    ],
)
def test_only_code_that_does_nothing_but_define_is_meant(code: str, expected: list[str]) -> None:
    assert uncalled(code) == expected


def test_code_that_prints_nothing() -> None:
    assert hint('x = 1', Cell()) == 'Nothing was printed: print what you need to see.'
    assert hint('x = 1', Cell(stdout='\n')) == 'Nothing was printed: print what you need to see.'


def test_a_coroutine_that_nothing_names() -> None:
    cell = failed('TypeError', "unsupported operand type(s) for +: 'coroutine' and 'int'")
    assert hint('f() + 1', cell) == 'That is a coroutine: put `await` before the call.'


async def test_a_call_that_was_not_awaited_is_named() -> None:
    async def search(query: str) -> str:
        """Search."""
        return query

    told = 'search was never awaited: write `await search(…)`.'
    kept = 'x is a coroutine, and nothing was done yet: put `await` before the call.'
    cells = {
        "search('a')": told,
        "x = search('a')": kept,
        "y = search('a')\nprint(y)\ndel y": told,
        "z = search('b')\nprint(z[0])": kept.replace('x', 'z', 1),
        "search('a')\n1 / 0": told,
        "final_answer(search('a'))": told,
        "print(await search('a'))": '',
        "import asyncio\nfound = [search(q) for q in 'ab']\nprint(await asyncio.gather(*found))": '',
    }
    model = ScriptedModel([*map(block, cells), 'Done.'])
    async with Agent(model, tools=[search], journal='off') as agent:
        steps = (await agent.run('go')).steps
    for (code, expected), step in zip(cells.items(), steps, strict=False):
        last = (step.observation or '').splitlines()[-1]
        assert last == expected if expected else 'await' not in last, code


def test_an_undefined_name_gets_the_nearest_ones() -> None:
    assert hint('serch()', failed('NameError', "name 'serch' is not defined")) == (
        "There is no 'serch'. Did you mean search or search_files?"
    )


def test_an_undefined_name_that_is_like_no_other_gets_no_guess() -> None:
    assert hint('zzz', failed('NameError', "name 'zzz' is not defined")) == ''


@pytest.mark.parametrize('type_', ['ModuleNotFoundError', 'ImportError'])
def test_a_missing_package(type_: str) -> None:
    assert hint('import numpy', failed(type_, "No module named 'numpy'")) == (
        'numpy is not installed here: use the standard library.'
    )


def test_code_that_is_not_python() -> None:
    assert hint('for', failed('SyntaxError', 'invalid syntax', 'syntax')) == (
        'Nothing of the code was run. Write all of it again, corrected.'
    )


@each_case(
    ('code', 'line', 'waited', 'expected'),
    [
        ('while True: pass', 1, 0.0, 'If a `while` loop never ends'),
        ('def f():\n    while True: pass\nf()', 3, 0.0, 'If a `while` loop never ends'),
        ('while False: pass\nsum(range(n))', 2, 0.0, 'The code took too long: use a faster algorithm'),
        ('import time\ntime.sleep(60)', 2, 0.0, 'The code was waiting'),
        ('wait_for_it()', 1, 9.0, 'The code was waiting'),
        ('sum(range(n))', None, 0.0, 'The code took too long: use a faster algorithm'),
    ],
)
def test_code_that_took_too_long(code: str, line: int | None, waited: float, expected: str) -> None:
    error = CellError(kind='time', type='TimeoutError', message='the time limit of 10 s was reached', line=line)
    assert hint(code, Cell(error=error, seconds=10.0, waited=waited)).startswith(expected)


def call(seconds: float, error: str | None = None, **arguments: object) -> ToolCall:
    return ToolCall(id=1, tool='search', arguments=arguments, ok=error is None, error=error, seconds=seconds)


@each_case(
    ('calls', 'blamed'),
    [
        ([], False),
        ([call(0.1)], False),
        ([call(9.0)], True),
        ([call(2.0)] * 4, True),
        ([call(0.1, 'CancelledError')], True),
    ],
)
def test_a_tool_that_took_too_long_is_named(calls: list[ToolCall], blamed: bool) -> None:
    cell = replace(failed('TimeoutError', 'the time limit of 10 s was reached', 'time'), seconds=10.0)
    found = hint('search()', cell, calls=calls)
    assert ('The tool search took too long' in found) is blamed
    assert ('The code took too long' in found) is not blamed


def test_other_errors_speak_for_themselves() -> None:
    assert hint('1/0', failed('ZeroDivisionError', 'division by zero')) == ''


def test_a_variable_that_was_lost_at_a_resume_is_named() -> None:
    error = CellError(kind='exception', type='NameError', message="name 'lines' is not defined")
    cell = Cell(error=error)
    assert 'lost' in hint('print(lines)', cell, names=['line'], lost={'lines'})
    assert 'line' in hint('print(lines)', cell, names=['line'])
