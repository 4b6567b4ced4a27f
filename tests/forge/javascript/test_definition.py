"""JavaScript tools as Python sees them: read from their source, which is never executed for it."""

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.javascript.definition import imported_tools, names_of_tests
from habilis.forge.javascript.jsdoc_types import to_hint
from habilis.forge.javascript.mutants import mutants
from habilis.forge.javascript.tokens import tokens
from habilis.forge.source import read_source
from tests.cases import each_case
from tests.forge.javascript.samples import fourfold

HEAD = """/**
 * The part of a text
 * that is asked for.
 *
 * Empty if there is none.
 * @param {string} text - The whole, @ included.
 * @param {integer} [start=0]
 * @param {{ deep: boolean }} [options]
 * @param {...number} more
 * @returns {Array<Record<string, ?number>>} What was found.
 */
export function part(text, start = 0, options, ...more) {
  return [];
}
"""


def source(params: str, tags: str) -> str:
    return f'/**\n * Does it.\n * {tags}\n * @returns {{string}}\n */\nexport function f({params}) {{}}\n'


def test_a_tool_is_read_from_its_block() -> None:
    read = read_source('part', HEAD, 'javascript')
    assert read.signature == (
        'part(text: str, start: int=0, options: dict | None=None, *more: float) -> list[dict[str, float | None]]'
    )
    assert read.summary == 'The part of a text that is asked for.'
    assert read.documentation.endswith('Empty if there is none.\n\nArgs:\n    text: The whole, @ included.')
    assert read.parameters == ('text', 'start', 'options', 'more')


@each_case(
    ('params', 'expected'),
    [
        ('a = 1.5', 'a: Any=1.5'),
        ('a = "x, y)"', "a: Any='x, y)'"),
        ('a = -1', 'a: Any=-1'),
        ('a = true', 'a: Any=True'),
        ('a = [1, 2]', 'a: Any=[1, 2]'),
        ('a = compute(1, {b: 2})', 'a: Any=None'),
        ('a = undefined', 'a: Any=None'),
        ('a /* first */', 'a: Any'),
    ],
)
def test_defaults_that_are_literals_are_kept(params: str, expected: str) -> None:
    assert read_source('f', source(params, '@param {any} a'), 'javascript').signature == f'f({expected}) -> str'


@each_case(
    ('code', 'problem'),
    [
        ('', 'must have one function `export function f'),
        ('function f() {}', 'must have one function `export function f'),
        ('export async function f() {}', 'must have one function `export function f'),
        ('// export function f() {}', 'must have one function'),
        ('const x = `export function f() {}`;', 'must have one function'),
        ('{ export function f() {} }', 'must have one function'),
        ('export function f() {}', 'needs a JSDoc block'),
        ('/* plain */ export function f() {}', 'needs a JSDoc block'),
        ('/** @returns {string} */ export function f() {}', 'needs a description'),
        ('/** Does it. */ export function f() {}', 'needs the type of its result'),
        (source('a, b', '@param {string} a'), 'must name its parameters in order: a, b'),
        (source('a', '@param {string} b'), 'must name its parameters in order: a'),
        (source('{ a }', '@param {string} a'), 'must have plain parameters'),
        (source('from', '@param {string} from'), "needs another name for its parameter 'from'"),
        (source('$a', '@param {string} $a'), "needs another name for its parameter '$a'"),
    ],
)
def test_incomplete_source_is_refused(code: str, problem: str) -> None:
    with pytest.raises(ForgeError) as error:
        read_source('f', code, 'javascript')
    assert problem in str(error.value)


@each_case(
    ('jsdoc', 'hint'),
    [
        ('number', 'float'),
        ('String', 'str'),
        ('number[][]', 'list[list[float]]'),
        ('Array.<string>', 'list[str]'),
        ('Array', 'list'),
        ('Object<string, number>', 'dict[str, float]'),
        ('(string|number)[]', 'list[str | float]'),
        ('string|null', 'str | None'),
        ('?boolean', 'bool | None'),
        ("'a'|'b'|3", "Literal['a'] | Literal['b'] | Literal[3]"),
        ('[number, string]', 'list'),
        ('{a: number, b: {c: string}}', 'dict'),
        ('Promise<string>', 'Any'),
        ('string|Map', 'Any'),
        ('*', 'Any'),
        ('', 'Any'),
        ('(string', 'Any'),
        ('Array<', 'Any'),
        ('(' * 5000, 'Any'),
        ("__import__('os')", 'Any'),
        ('string; import os', 'Any'),
    ],
)
def test_types(jsdoc: str, hint: str) -> None:
    assert to_hint(jsdoc) == hint


def test_a_documentation_cannot_leave_its_string() -> None:
    code = source('', '').replace('Does it.', 'Does it. """ + open("x") \\')
    assert read_source('f', code, 'javascript').documentation == 'Does it. """ + open("x") \\'


def test_imports_and_tests_are_found_where_they_are() -> None:
    assert read_source('fourfold', fourfold().code, 'javascript').uses == ('double',)
    code = "import { a, b as c } from 'library';\n// import { d } from 'library'\nimport { e } from 'other';\n"
    assert imported_tools(code + 'const s = "import { f } from \'library\'";') == ('a', 'b')
    code = 'function test_a() {}\nasync function test_b() {}\nconst test_c = () => 1;\n{ function test_d() {} }\n'
    assert names_of_tests(code + '// function test_e() {}\n/function test_f/;\n`function test_g`') == [
        'test_a',
        'test_b',
        'test_c',
    ]


@each_case(
    ('code', 'expected'),
    [
        ('a / b / c', ['a', '/', 'b', '/', 'c']),
        ('x = /[/]"/g', ['x', '=', '/[/]"/g']),
        ('return /a\\/b/', ['return', '/a\\/b/']),
        ('f(1) / 2', ['f', '(', '1', ')', '/', '2']),
        ('`a${`b${c}`}d` + 1', ['`a${`b${c}`}d`', '+', '1']),
        ('`a${{b: "}"}}`', ['`a${{b: "}"}}`']),
        ('a?.b ?? 1_000.5e3', ['a', '?.', 'b', '??', '1_000.5e3']),
        ("'it\\'s' // done", ["'it\\'s'", '// done']),
        ('"open', ['"open']),
        ('/* open', ['/* open']),
        ('`open ${', ['`open ${']),
        ('\\ ü', ['\\', 'ü']),
    ],
)
def test_tokens(code: str, expected: list[str]) -> None:
    assert [token.text for token in tokens(code)] == expected


def test_mutants_change_behaviour_only() -> None:
    code = """import { a } from 'library';
export function f(x) {
  // 1 + 1 is not mutated
  if (!(x >= -1 && true)) throw new Error('at least ' + 1);
  return { 'key': x + 2 === 3 ? 'yes' : '' };
}
"""
    changes = [mutant.change.rpartition(': ')[2] for mutant in mutants(code)]
    assert changes == [
        '! →  ',
        '>= → >',
        '- →  ',
        '1 → (1+1)',
        '&& → ||',
        'true → false',
        '+ → -',
        '2 → (2+1)',
        '=== → !==',
        '3 → (3+1)',
        "'yes' → ''",
        "'' → 'x'",
    ]
    assert mutants(code)[0].change.startswith('line 4: `if (!(x >= -1 && true)) throw')
    assert len(mutants(code, limit=5)) == 5
