"""Tests and calls of JavaScript tools. Code that wants to cheat or to harm gets nowhere."""

from dataclasses import replace

import pytest

from habilis.core.errors import ToolCallError
from habilis.core.limits import Limits
from habilis.forge.checks.calls import call_candidate
from habilis.forge.checks.mutation import mutation_score
from habilis.forge.checks.verification import passes_when_wrong, verify, verify_all
from habilis.forge.contract import Candidate
from tests.forge.javascript.samples import double, fourfold, tool

pytestmark = pytest.mark.usefixtures('quickjs')
QUICK = Limits(seconds=0.5, memory_mb=64)
SMALL = Limits(seconds=30, memory_mb=64)


def with_tests(body: str) -> Candidate:
    """`double` with other tests."""
    return replace(double(), tests=f"import {{ double }} from './tool.js';\n{body}")


async def call(body: str, value: object = None, *, before: str = '') -> object:
    return await call_candidate(tool('odd', body, before=before), (value,), {})


async def report(body: str) -> str:
    return (await verify(with_tests(body))).report


# Tests ----------------------------------------------------------------------------------------------------------------


async def test_a_candidate_that_passes() -> None:
    result = await verify(double())
    assert result.ok
    assert [test.name for test in result.tests] == ['test_three']


async def test_a_failing_test_says_which_values_it_had() -> None:
    tests = 'function test_a() {\n  assert.equal(double(3), 7);\n}\nconst test_b = () => assert(double(1) === 2);\n'
    result = await verify(with_tests(tests))
    assert [(test.name, test.ok) for test in result.tests] == [('test_a', False), ('test_b', True)]
    assert result.report == 'test_a: line 3: assert.equal(double(3), 7);: got 6, expected 7'
    assert len((await verify(with_tests(tests), stop=True)).tests) == 1


@pytest.mark.parametrize(
    ('body', 'expected'),
    [
        ('assert.equal([1, {a: "é"}], [1, {a: "é"}])', ''),
        ('assert.deepStrictEqual({a: 1}, {a: 2})', 'got {"a":1}, expected {"a":2}'),
        ('assert.equal(1, "1")', 'got 1, expected "1"'),
        ('assert.equal(undefined, null)', 'got undefined, expected null'),
        ('assert.equal(NaN, NaN); assert.equal(0, -0)', ''),
        ('assert.equal({a: undefined}, {})', 'got {}, expected {}'),
        ('assert.equal([], {})', 'got [], expected {}'),
        ('assert.equal(new Date(0), new Date(0))', 'got a Date, expected a Date'),
        ('assert.notEqual([1], [1])', 'got [1], expected something else'),
        ('assert.near(0.1 + 0.2, 0.3)', ''),
        ('assert.near(0.1, 0.3)', 'got 0.1, expected about 0.3'),
        ('assert.throws(() => { throw new RangeError("too far") }, RangeError)', ''),
        ('assert.throws(() => { throw new RangeError("too far") }, /far/)', ''),
        ('assert.throws(() => { throw new RangeError("too far") }, { message: "too far" })', ''),
        ('assert.throws(() => { throw new RangeError("x") }, TypeError)', 'another error was thrown: RangeError: x'),
        ('assert.throws(() => 1)', 'no error was thrown'),
        ('assert.ok(0, "it is nothing")', 'it is nothing'),
        ('double.x.y', "TypeError: cannot read property 'y' of undefined"),
        ('return 1', 'the test returned something: it must be a plain function with asserts'),
        ('throw { toString() { throw 1 }, get message() { throw 2 } }', 'it threw something that cannot be shown'),
        ('throw "plain"', 'plain'),
        ('throw null', 'it threw null'),
        ('throw Symbol("x")', 'it threw a symbol'),
    ],
)
async def test_assertions_and_errors(body: str, expected: str) -> None:
    result = await verify(with_tests(f'function test_it() {{ {body} }}'))
    assert not result.error
    assert result.tests[0].error.endswith(expected)
    assert result.ok == (not expected)


async def test_the_habits_of_node_work() -> None:
    tests = "import assert, { equal } from 'node:assert/strict';\nexport function test_a() { equal(double(1), 2); }\n"
    assert (await verify(with_tests(tests + 'function test_b() { assert.ok(double(2)); console.log("x"); }'))).ok


async def test_what_is_no_test_is_not_run() -> None:
    tests = 'const test_values = [1];\nfunction helper() { throw 1 }\nfunction test_a() { function test_inner() {} }'
    assert [test.name for test in (await verify(with_tests(tests))).tests] == ['test_a']
    assert (await verify(with_tests(''))).report == 'there are no tests'
    exported = 'function test_a() {}\nexport { test_a };\nexport function test_b() {}\n'
    assert [test.name for test in (await verify(with_tests(exported))).tests] == ['test_a', 'test_b']


async def test_promises_prove_nothing() -> None:
    assert 'returned something' in await report('async function test_a() { assert.equal(double(1), 2) }')
    assert 'waits (`await`)' in await report('await new Promise(() => 1);\nfunction test_a() {}')


async def test_wrong_source_is_named() -> None:
    assert (await report('function test_a() { 1 + ; }')).startswith(
        'the tests: line 2: function test_a() { 1 + ; }: Syn'
    )
    assert (await report('function test_a( {')).startswith('the tests: SyntaxError')
    wrong = await verify(replace(double(), code='export function double( {'))
    assert wrong.report.startswith('the code: line 1: export function double( {: SyntaxError')
    missing = await verify(replace(double(), code='export function other() {}'))
    assert "the code: SyntaxError: Could not find export 'double'" in missing.report
    assert await report('nothing();') == 'the tests: line 2: nothing();: ReferenceError: nothing is not defined'


async def test_tests_must_be_able_to_fail() -> None:
    assert await passes_when_wrong(with_tests('function test_a() { double(3) }'))
    assert not await passes_when_wrong(double())
    score = await mutation_score(double(), seconds=0.01)
    assert (score.killed, score.total) == (2, 2)


async def test_what_a_tool_uses_is_there() -> None:
    assert (await verify(fourfold())).ok
    assert not (await verify(fourfold(double(factor=3)))).ok
    assert await call_candidate(fourfold(), (5,), {}) == 20


async def test_candidates_share_nothing() -> None:
    marking = tool('double', 'globalThis.mark = 1; Object.prototype.mark = 1; return value * 2')
    reading = tool('double', 'return value * (globalThis.mark || ({}).mark ? 3 : 2)')
    results = await verify_all([marking, reading, reading])
    assert [result.ok for result in results] == [True, True, True]


# Calls ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('body', 'value', 'expected'),
    [
        ('return value', {'a': [1, 2.5, None, True, 'é😀\0"'], '__proto__': 1}, None),
        ('return {a: undefined, b: null, c: [undefined]}', None, {'b': None, 'c': [None]}),
        ('return', None, None),
        ('return 2n ** 100n', None, 2**100),
        ('return 1e21', None, 1e21),
        ('return "\\ud800"', None, '\ufffd'),
        ('return Object.create(null, {a: {value: 1, enumerable: true}, b: {value: 2}})', None, {'a': 1}),
        ('return value.length', '\ud800', 1),
        ('return typeof require + typeof process + typeof fetch + typeof std + typeof os', None, 'undefined' * 5),
        ('return new Date(2020, 0, 1).toISOString()', None, '2020-01-01T00:00:00.000Z'),
    ],
)
async def test_plain_data_goes_in_and_out(body: str, value: object, expected: object) -> None:
    result = await call(body, value)
    assert result == (value if body == 'return value' else expected)


@pytest.mark.parametrize(
    ('body', 'problem'),
    [
        ('return NaN', 'it returned NaN, which is not plain data'),
        ('return [1, -Infinity]', 'it returned -Infinity'),
        ('return () => 1', 'it returned a function'),
        ('return {a: Symbol("x")}', 'it returned a symbol'),
        ('return new Map()', 'it returned a Map'),
        ('return Promise.resolve(1)', 'it returned a Promise'),
        ('const a = []; a.push(a); return a', 'it returned data nested deeper than 100'),
        ('return "x".repeat(17 * 2 ** 20)', 'it answered with 17,825,794 bytes; the limit is 16,777,216'),
        ('return 10n ** 5000n', 'its result cannot be read'),
        ('throw new TypeError("no")', 'odd: TypeError: no'),
        ('throw { name: {}, message: "x".repeat(10) }', 'odd: it threw {"name":{},"message":"xxxxxxxxxx"}'),
        ('return new Proxy({}, { ownKeys() { throw new Error("no keys") } })', 'Error: no keys'),
    ],
)
async def test_other_results_are_errors(body: str, problem: str) -> None:
    with pytest.raises(ToolCallError) as error:
        await call(body)
    assert problem in str(error.value)


@pytest.mark.parametrize('value', [float('nan'), float('inf'), 2**53 + 1, [{'a': -(2**60)}], object(), {1, 2}])
async def test_arguments_that_javascript_cannot_have_are_refused(value: object) -> None:
    with pytest.raises(ToolCallError, match='odd: an argument cannot be passed to JavaScript: '):
        await call('return 1', value)


# Hostile --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('body', 'problem'),
    [
        ('for (;;) {}', 'it took longer than 0.5 s'),
        ('for (;;) { try { for (;;) {} } catch {} }', 'it took longer than 0.5 s'),
        ('/(a+)+$/.test("a".repeat(100) + "b")', 'it took longer than 0.5 s'),
        ('const all = []; for (;;) all.push(new Array(1000).fill(1))', 'out of memory'),
        ('new ArrayBuffer(2 ** 30)', 'out of memory'),
        ('(function f() { return 1 + f() })()', 'call stack'),
        ('let f = () => [1].map(f); f()', 'call stack'),
        ('eval("(".repeat(1e5))', 'call stack'),
    ],
)
async def test_limits_hold(body: str, problem: str) -> None:
    limits = QUICK if 'longer' in problem else SMALL
    result = await verify(with_tests(f'function test_a() {{ {body} }}'), limits=limits)
    assert not result.ok
    assert 'test_a' in result.report
    assert problem in result.report
    assert (await verify(double(), limits=SMALL)).ok


@pytest.mark.parametrize(
    'before',
    [
        'JSON.stringify = () => "[]"; JSON.parse = () => [[3]];',
        'Object.is = () => true; Object.prototype.toString = () => "6"; Object.prototype.valueOf = () => 6;',
        'Object.defineProperty(Object.prototype, "text", { get: () => "", set() {} });',
        'Array.prototype[Symbol.iterator] = function* () {}; Array.isArray = () => true;',
        'Reflect.ownKeys = () => []; Reflect.apply = () => 6; Object.hasOwn = () => true;',
        'Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 6;',
        'Error = class { constructor() { return 6 } }; Error.prepareStackTrace = () => { throw 1 };',
        'Promise = undefined; Promise.prototype;',
        'globalThis.assert = { equal() {} };',
        'assert.equal = () => undefined;',
        'Object.defineProperty(globalThis, "assert", { value: { equal() {} } });',
        'Object.defineProperty(RangeError, Symbol.hasInstance, { value: () => true });',
        'RangeError.prototype = TypeError.prototype; RegExp.prototype.exec = () => [""];',
        'import("./test_tool.js").then((tests) => { tests.test_three = () => 1 });',
        'export const then = (done) => done({ test_three: () => undefined });',
        'queueMicrotask(() => { for (;;) {} });',
        'String.prototype.slice = String.prototype.toWellFormed = () => "";',
    ],
)
async def test_a_tool_cannot_forge_the_results_of_its_tests(before: str) -> None:
    tests = """import { wrong } from './tool.js';
function test_value() { assert.equal(wrong(3), 6); }
function test_data() { assert.equal(wrong([1]), [1, 1]); }
function test_error() { assert.throws(() => wrong(null), RangeError); }
function test_message() { assert.throws(() => wrong(null), /too small/); }
"""
    body = 'if (value === null) throw new TypeError("x"); return value === 3 ? {} : [1, 2];'
    result = await verify(tool('wrong', body, before=before, tests=tests))
    assert not result.ok
    assert all(test.error for test in result.tests)


async def test_a_tool_cannot_reach_its_tests_or_other_modules() -> None:
    for name in ('./test_tool.js', 'std', 'os', 'fs', 'node:fs', '/etc/passwd', 'https://example.com/x.js'):
        result = await verify(tool('odd', 'return 1', before=f'import * as found from "{name}";'))
        assert 'there is no module' in result.report, name


@pytest.mark.parametrize(
    'peek',
    [
        'Error.prepareStackTrace = (_, frames) => frames; return new Error().stack[1].getFunction()',
        'Object.assign(Error, { prepareStackTrace: (_, all) => all }); return new Error().stack[1].getFunction()',
        'return Function("return arguments.callee.caller.caller")()',
        'return odd.caller',
        'return new Error().stack',
    ],
)
async def test_a_tool_cannot_read_the_test_that_calls_it(peek: str) -> None:
    tests = """import { odd } from './tool.js';
function test_a() { assert(!String(odd(1)).includes('hunter' + 2)); // hunter2
}
"""
    assert (await verify(tool('odd', f'try {{ {peek} }} catch {{ }}', tests=tests))).report == ''


async def test_no_variable_of_the_host_is_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OPENAI_API_KEY', 'hunter2')
    found = await call('return Object.getOwnPropertyNames(globalThis).map((name) => name + globalThis[name]).join()')
    assert 'hunter2' not in str(found)


async def test_a_forged_encoder_changes_only_the_result_of_its_own_tool() -> None:
    before = 'Object.prototype.toJSON = Array.prototype.toJSON = () => 1; JSON.stringify = () => "]";'
    assert await call('return [value, {a: 1}]', 'x', before=before) == ['x', {'a': 1}]
