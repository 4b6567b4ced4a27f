"""Runs the tests of a JavaScript tool, and calls it: each time in a fresh instance of QuickJS.

The host calls the test functions one by one and sees itself which throw, so code cannot forge a result.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from inspect import Parameter, Signature
from typing import TypeVar, cast

from habilis.core.errors import ForgeError, ToolCallError
from habilis.core.limits import Limits
from habilis.core.narrowing import is_dict, is_list, is_tuple
from habilis.forge.contract import LIBRARY_MODULE, Candidate, TestOutcome, Verification
from habilis.forge.javascript.definition import names_of_tests
from habilis.forge.javascript.installation import javascript_engine
from habilis.sandbox.contract import GuestDied
from habilis.sandbox.host.workers import WORKERS, stop_at_exit
from habilis.sandbox.javascript.engine import JavaScriptGuest, Thrown, Value

T = TypeVar('T')
_TOOL, _TESTS = 'tool.js', 'test_tool.js'
_ASSERT = 'export default globalThis.assert;\n' + ''.join(
    f'export const {name} = assert.{name};\n' for name in ('ok', 'equal', 'strictEqual', 'deepStrictEqual', 'throws')
)
_EXACT = 2**53
"""Integers beyond this are not exact in JavaScript."""


@dataclass(frozen=True, kw_only=True)
class _Instance:
    """A guest in which nothing of a tool has run yet, with the functions of `guest.js`."""

    guest: JavaScriptGuest
    describe: Value
    call: Value

    def failure(self, thrown: Thrown, file: str = '', source: str = '') -> str:
        """What was thrown, with the line of the file if it is known."""
        text, stack = json.loads(self.guest.text(self.guest.apply(self.describe, thrown.value)))
        lines = source.splitlines()
        found = re.search(rf'\b{re.escape(file)}:(\d+)', stack) if file else None
        number = int(found[1]) if found else 0
        return f'line {number}: {lines[number - 1].strip()[:200]}: {text}' if 0 < number <= len(lines) else text


async def verify(candidate: Candidate, used: Sequence[Candidate], *, limits: Limits, stop: bool) -> Verification:
    """Run the tests. `stop`: at the first failure."""
    started = time.perf_counter()
    outcomes: list[TestOutcome] = []
    current = ['']

    def work(instance: _Instance) -> str:
        guest = instance.guest
        names = names_of_tests(candidate.tests)
        aliases = ', '.join(f'{name} as $test_{index}' for index, name in enumerate(names))
        try:
            guest.load(f'import {{ {candidate.name} }} from "{_TOOL}";', 'check.js')
        except Thrown as thrown:
            return f'the code: {instance.failure(thrown, _TOOL, candidate.code)}'
        try:
            exports = guest.load(f'{candidate.tests}\nexport {{ {aliases} }};', _TESTS)
        except Thrown as thrown:
            return f'the tests: {instance.failure(thrown, _TESTS, candidate.tests)}'
        for index, name in enumerate(names):
            test = guest.get(exports, f'$test_{index}')
            if not guest.is_function(test):
                continue
            current[0] = f'in {name}: '
            error = _run_test(instance, test, candidate.tests)
            outcomes.append(TestOutcome(name=name, error=error))
            if error and stop:
                break
        return ''

    modules = {_TOOL: candidate.code, **_library(used), **dict.fromkeys(('assert', 'node:assert'), _ASSERT)}
    modules['node:assert/strict'] = modules['assert/strict'] = _ASSERT
    try:
        error = await _with_instance(work, limits, modules)
    except GuestDied as died:
        error = f'{current[0]}{died}'
    return Verification(tests=tuple(outcomes), error=error, seconds=time.perf_counter() - started)


def _run_test(instance: _Instance, test: Value, source: str) -> str:
    try:
        result = instance.guest.apply(test)
    except Thrown as thrown:
        return instance.failure(thrown, _TESTS, source) or 'the test failed'
    if not instance.guest.is_undefined(result):
        return 'the test returned something: it must be a plain function with asserts'
    return ''


async def call(
    candidate: Candidate, used: Sequence[Candidate], signature: Signature, arguments: '_Arguments', *, limits: Limits
) -> object:
    """Call the function. Raises `ToolCallError` with the error of the code."""
    text = _encode(candidate.name, signature, arguments)

    def work(instance: _Instance) -> str:
        guest = instance.guest
        try:
            exports = guest.load(f'export {{ {candidate.name} }} from "{_TOOL}";', 'call.js')
            return guest.text(guest.apply(instance.call, guest.get(exports, candidate.name), guest.string(text)))
        except Thrown as thrown:
            raise ToolCallError(f'{candidate.name}: {instance.failure(thrown)}') from None

    try:
        return json.loads(await _with_instance(work, limits, {_TOOL: candidate.code, **_library(used)}))
    except (GuestDied, ForgeError) as error:
        raise ToolCallError(f'{candidate.name}: {error}') from None
    except (ValueError, RecursionError) as error:  # such as a number of more digits than Python reads
        raise ToolCallError(f'{candidate.name}: its result cannot be read: {error}') from None


_Arguments = tuple[tuple[object, ...], Mapping[str, object]]


def _encode(name: str, signature: Signature, arguments: _Arguments) -> str:
    """The arguments in order, each in a list. A list is empty for an optional one that is None, or was not given."""
    try:
        bound = signature.bind(*arguments[0], **arguments[1]).arguments
    except TypeError as error:
        raise ToolCallError(f'{name}: {error}') from None
    given: list[list[object]] = []
    for parameter in signature.parameters.values():
        if parameter.kind == Parameter.VAR_POSITIONAL:
            given += [[one] for one in cast('tuple[object, ...]', bound.get(parameter.name, ()))]
            continue
        value = bound.get(parameter.name)
        given.append([] if value is None and parameter.default is not Parameter.empty else [value])
    while given and not given[-1]:
        given.pop()
    try:
        _check_numbers(given)
        return json.dumps(given, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolCallError(f'{name}: an argument cannot be passed to JavaScript: {error}') from None


def _check_numbers(value: object) -> None:
    if isinstance(value, int) and abs(value) > _EXACT:
        msg = f'{str(value)[:40]} is not exact in JavaScript; pass it as text'
        raise ValueError(msg)
    if is_dict(value) or is_list(value) or is_tuple(value):
        for one in value.values() if is_dict(value) else value:
            _check_numbers(one)


def _library(used: Sequence[Candidate]) -> dict[str, str]:
    """The module that tools import others from, and one module for each."""
    exports = ''.join(f"export {{ {tool.name} }} from '{LIBRARY_MODULE}/{tool.name}';\n" for tool in used)
    return {LIBRARY_MODULE: exports, **{f'{LIBRARY_MODULE}/{tool.name}': tool.code for tool in used}}


async def _with_instance(work: Callable[[_Instance], T], limits: Limits, modules: Mapping[str, str]) -> T:
    """Do something with a fresh instance, on a worker thread."""
    guest = JavaScriptGuest(await javascript_engine(), limits, modules)
    stop_at_exit(guest)

    def run() -> T:
        with guest:
            functions = guest.evaluate(_guest_code(), 'guest.js')
            return work(
                _Instance(guest=guest, describe=guest.get(functions, 'describe'), call=guest.get(functions, 'call'))
            )

    try:
        return await asyncio.shield(WORKERS.submit(run))
    except asyncio.CancelledError:
        guest.interrupt()
        raise


@cache
def _guest_code() -> str:
    return files('habilis.forge.javascript').joinpath('guest.js').read_text(encoding='utf-8')
