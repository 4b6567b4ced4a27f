"""Specifications and tests of a build are Python; for a tool in JavaScript they are translated."""

import ast

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.checks.verification import verify
from habilis.forge.contract import Candidate
from habilis.forge.javascript.definition import python_definition
from habilis.forge.javascript.translation import javascript_code, javascript_module, javascript_stub, javascript_tests
from tests.cases import each_case

STUBS = [
    "def shout(text: str) -> str:\n    'Return the text in capitals.'",
    "def mean(numbers: list[float], digits: int = 2) -> float | None:\n    'The mean; None if there is none.'",
    "def count(words: list[str]) -> dict[str, int]:\n    'How often each word occurs.'",
    "def joined(*parts: str) -> str:\n    'All parts, one after the other.'",
    "def pick(value: Any, keys: list, known: dict, really: bool = True) -> list[list[int]]:\n    'Any.'",
]


@pytest.mark.parametrize('stub', STUBS)
def test_a_definition_survives_the_way_there_and_back(stub: str) -> None:
    name = stub.removeprefix('def ').partition('(')[0]
    code = javascript_stub(stub)
    assert ast.unparse(ast.parse(python_definition(name, code))) == ast.unparse(ast.parse(stub))


@pytest.mark.parametrize(
    ('stub', 'problem'),
    [
        ("def f(items: set[int]) -> int:\n    'x'", 'set[int] has no counterpart in JavaScript'),
        ("def f(pair: tuple[int, int]) -> int:\n    'x'", 'tuple[int, int] has no counterpart'),
        ("def f(by: dict[int, str]) -> int:\n    'x'", 'dict[int, str] has no counterpart'),
        ("def f(*, by: int) -> int:\n    'x'", 'no parameters by keyword'),
        ("def f(function: int) -> int:\n    'x'", 'function is a word of JavaScript'),
        ("def new(a: int) -> int:\n    'x'", 'new is a word of JavaScript'),
        ("def f(a: int = 9007199254740993) -> int:\n    'x'", '9007199254740993 has no counterpart'),
    ],
)
def test_what_javascript_does_not_have_is_refused(stub: str, problem: str) -> None:
    with pytest.raises(ForgeError, match=problem.replace('[', r'\[').replace(']', r'\]')):
        javascript_stub(stub)


def test_the_end_of_a_comment_in_a_docstring_does_not_end_the_comment() -> None:
    stub = "def f(a: int) -> int:\n    'Ends */ here.'"
    assert python_definition('f', javascript_stub(stub))


STUB = "def f(a: list[int], b: int = 1, c: int = 2) -> int:\n    'x'"


@each_case(
    ('statement', 'expected'),
    [
        ('assert f([1, 2]) == -3', 'assert.deepStrictEqual(f([1, 2]), -3);'),
        ('assert f([], c=5) == 1.5', 'assert.deepStrictEqual(f([], undefined, 5), 1.5);'),
        ('assert f([1]) is None', 'assert(f([1]) == null);'),
        ('assert f([1]) is True', 'assert.deepStrictEqual(f([1]), true);'),
        ('assert f((1,)) != {"a": "\\u2028\'"}', 'assert.notDeepStrictEqual(f([1]), { "a": "\\u2028\'" });'),
        ('assert f([1])', 'assert.equal(f([1]), true);'),
        ('assert not f([1])', 'assert.equal(f([1]), false);'),
        ('assert abs(f([1]) - 0.1) < 1e-9', 'assert(Math.abs((f([1]) - 0.1)) < 1e-09);'),
        ('new = f([1])\n    assert new == 2', 'var $new = f([1]);\n  assert.deepStrictEqual($new, 2);'),
    ],
)
def test_asserts_are_translated(statement: str, expected: str) -> None:
    [test] = javascript_tests(STUB, {'test_it': f'def test_it() -> None:\n    {statement}'}).values()
    assert test == f'function test_it() {{\n  {expected}\n}}'


@each_case(
    'statement',
    [
        'assert f([1]) == {1, 2}',
        'assert f([1]) == {1: 2}',
        'assert f([1]) == 9007199254740993',
        'assert f([1]) == 1e999',
        'assert f([1]) == b"x"',
        'assert f([1]) == {"__proto__": 1}',
        'assert f(*[1]) == 2',
        'assert f([1], d=2) == 2',
        'assert f([1]) == [1] + [2]',
        'assert f([1]) == other',
        'assert isinstance(f([1]), int)',
        'assert 1 < f([1]) < 3',
        'for i in [1]:\n        assert f([i]) == 2',
        'try:\n        f([])\n    except ValueError:\n        pass',
    ],
)
def test_what_cannot_be_translated_is_left_out(statement: str) -> None:
    assert javascript_tests(STUB, {'test_it': f'def test_it() -> None:\n    {statement}'}) == {}


@pytest.mark.usefixtures('quickjs')
async def test_translated_tests_judge_code() -> None:
    stub = "def longest(words: list[str]) -> str | None:\n    'The longest word; None if there is none.'"
    tests = {
        'test_some': "def test_some() -> None:\n    assert longest(['a', 'ccc', 'bb']) == 'ccc'",
        'test_none': 'def test_none() -> None:\n    found = longest([])\n    assert found is None',
    }
    body = 'let best;\n  for (const one of words) if (!best || one.length > best.length) best = one;\n  return best;'
    for code in (
        f'function longest(words) {{\n  {body}\n}}',
        f'/** Other words. */\nexport function longest(words) {{\n  {body}\n}}',
    ):
        right = javascript_code(code, stub)
        assert python_definition('longest', right)
        candidate = Candidate(name='longest', code=right, tests=javascript_module(stub, tests), language='javascript')
        assert (await verify(candidate)).ok
    wrong = javascript_code('function longest(words) { return words[0]; }', stub)
    candidate = Candidate(name='longest', code=wrong, tests=javascript_module(stub, tests), language='javascript')
    assert [test.name for test in (await verify(candidate)).tests if not test.ok] == ['test_some']


@pytest.mark.parametrize('code', ['', 'const longest = 1;', 'function other(words) {}', 'function longest(list) {}'])
def test_code_without_the_function_is_refused(code: str) -> None:
    with pytest.raises(ForgeError):
        javascript_code(code, "def longest(words: list[str]) -> str | None:\n    'The longest word.'")
