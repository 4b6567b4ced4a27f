"""Runs inside the sandbox, as a cell: loads a tool and its tests, and runs them. The host reads the last expression.

`forge_request` is a variable: `library` has the names and code of the tools that `code` uses.
"""

import ast
import copy
import math
import re
import sys
import traceback
import types
from collections.abc import Callable, Iterable
from time import perf_counter as _clock  # bound before a tool can replace it
from typing import Any

from habilis.core.codec import NotPlain, pack, unpack

Request = dict[str, Any]
Test = Callable[..., object]
_SHOWN = {
    got: ast.parse(f"f'got {{_habilis_{got}!r}}, expected {{_habilis_{wanted}!r}}'[:500]", mode='eval').body
    for got, wanted in (('left', 'right'), ('right', 'left'))
}


def _explained(tree: ast.Module) -> ast.Module:
    """Tests whose `assert a == b` says what both sides were."""
    pending: list[Any] = [tree]
    while pending:  # statements only: a walk over all nodes takes longer than most tests
        node = pending.pop()
        for field in ('body', 'orelse', 'finalbody', 'handlers', 'cases'):
            pending += getattr(node, field, ())
        if isinstance(node, ast.Assert) and node.msg is None and isinstance(node.test, ast.Compare):
            _explain(node, node.test)
    return tree


def _explain(node: ast.Assert, compare: ast.Compare) -> None:
    if len(compare.ops) == 1 and isinstance(compare.ops[0], ast.Eq):
        sides = [
            ast.copy_location(
                ast.NamedExpr(ast.copy_location(ast.Name(f'_habilis_{name}', ast.Store()), side), side), side
            )
            for name, side in (('left', compare.left), ('right', compare.comparators[0]))
        ]
        compare.left, compare.comparators = sides[0], [sides[1]]
        node.msg = _SHOWN['right' if isinstance(sides[0].value, ast.Constant) else 'left']


def _failure(error: BaseException, filename: str, source: str) -> str:
    lines = source.splitlines()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
    line = frames[-1].lineno if frames else None
    where = f'line {line}: {lines[line - 1].strip()[:200]}: ' if line and line <= len(lines) else ''
    kind = type(error).__name__
    said = str(error)[:1000]
    if isinstance(error, AssertionError):
        return f'{where}{said or "the assertion is false"}'
    return f'{where}{kind}: {said}' if said else f'{where}{kind}'


def _load(request: Request) -> types.ModuleType:
    """The modules `library` and `tool`."""
    library = types.ModuleType('library')
    sys.modules['library'] = library
    for name, code in request['library']:
        scope = types.ModuleType(f'library.{name}')
        exec(compile(code, f'{name}.py', 'exec'), scope.__dict__)
        setattr(library, name, getattr(scope, name))
    tool = types.ModuleType('tool')
    sys.modules['tool'] = tool
    exec(compile(request['code'], 'tool.py', 'exec'), tool.__dict__)
    return tool


def _plain(function: Callable[..., object]) -> Callable[..., object]:
    """The function with plain data as its results: what a tool returns must not decide whether it equals something."""

    def call(*args: object, **kwargs: object) -> object:
        result = function(*args, **kwargs)
        try:
            return unpack(pack(result))
        except NotPlain as error:
            raise AssertionError(f'the result, {error}') from None

    return call


def _call(  # pyright: ignore[reportUnusedFunction]
    request: Request,
) -> object:
    tool = _load(request)
    return getattr(tool, request['name'])(*request['args'], **request['kwargs'])


def _results(  # pyright: ignore[reportUnusedFunction]
    request: Request,
) -> list[str]:
    """Results of calls as text; the class of an exception after `!`."""
    tool = _load(request)
    results: list[str] = []
    for arguments in request['inputs']:
        try:
            results.append(repr(_plain(getattr(tool, request['name']))(*arguments))[:2000])
        except Exception as error:
            results.append(f'!{type(error).__name__}')
    return results


def _time(  # pyright: ignore[reportUnusedFunction]
    request: Request,
) -> float:
    """Seconds per call. Each pass over the inputs has a module of its own: no result can come from a cache."""
    _load(request)
    code = compile(request['code'], 'tool.py', 'exec')
    passes = request.setdefault('passes', 1)  # as many as the last measurement needed
    best, left = math.inf, 4
    while left:
        work: list[tuple[Callable[..., object], list[list[object]]]] = []
        for _ in range(passes):
            tool = types.ModuleType('tool')
            exec(code, tool.__dict__)
            work.append((getattr(tool, request['name']), copy.deepcopy(request['inputs'])))
        started = _clock()
        for function, inputs in work:
            for arguments in inputs:
                function(*arguments)
        seconds = _clock() - started
        if seconds < 0.002 and passes < 128:  # the clock is coarse
            passes = request['passes'] = 2 * passes
            continue
        best, left = min(best, seconds), left - 1  # what disturbs a measurement makes it longer
    return best / (passes * len(request['inputs']))


class _Raises:
    """`pytest.raises`, which models use out of habit."""

    def __init__(self, kind: type[BaseException] | tuple[type[BaseException], ...], match: str = '') -> None:
        self._kind, self._match = kind, match

    def __enter__(self) -> '_Raises':
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if error is None:
            raise AssertionError(f'{self._kind} was not raised')
        return isinstance(error, self._kind) and bool(re.search(self._match, str(error)))


def _few_of_pytest() -> types.ModuleType:
    module = types.ModuleType('pytest')
    module.raises = _Raises  # pyright: ignore[reportAttributeAccessIssue]
    module.approx = _Near  # pyright: ignore[reportAttributeAccessIssue]
    module.mark = types.SimpleNamespace(parametrize=_parametrize)  # pyright: ignore[reportAttributeAccessIssue]
    return module


def _parametrize(names: str | Iterable[str], values: Iterable[Any]) -> Callable[[Test], Test]:
    """`pytest.mark.parametrize`: the test stays one test, which is called with each of the values."""
    keys = [name.strip() for name in names.split(',')] if isinstance(names, str) else list(names)

    def mark(test: Test) -> Test:
        rows = [dict(zip(keys, value if len(keys) > 1 else [value], strict=True)) for value in values]
        test.__dict__['cases'] = [{**case, **row} for case in getattr(test, 'cases', [{}]) for row in rows]
        return test

    return mark


def _run_test(test: Any, source: str) -> str:
    """What is wrong; empty if the test passes."""
    for case in getattr(test, 'cases', [{}]):
        try:
            if test(**case) is not None:
                return 'the test returned something: it must be a plain function with asserts'
        except BaseException as raised:
            return _failure(raised, 'test_tool.py', source) + (f' (with {case!r})'[:500] if case else '')
    return ''


class _Near(float):
    """`pytest.approx` of one number."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float) and math.isclose(self, other, rel_tol=1e-6, abs_tol=1e-12)

    __hash__ = float.__hash__


def _run(  # pyright: ignore[reportUnusedFunction]
    request: Request,
) -> list[list[str]]:
    tool = types.ModuleType('tool')
    vars(tool).update(vars(_load(request)))
    sys.modules['tool'] = tool  # what tests see; calls inside of the tool itself are as they were written
    setattr(tool, request['name'], _plain(getattr(tool, request['name'])))
    source = request['tests']
    tests = types.ModuleType('test_tool')
    sys.modules['pytest'] = tests.pytest = _few_of_pytest()  # pyright: ignore[reportAttributeAccessIssue]
    tree = source if request['stop'] else _explained(ast.parse(source))
    exec(compile(tree, 'test_tool.py', 'exec'), tests.__dict__)
    outcomes: list[list[str]] = []
    for name, test in list(vars(tests).items()):
        is_test = name.startswith('test') and isinstance(test, types.FunctionType)
        if is_test and test.__globals__ is tests.__dict__:  # and not imported
            print(f'{request["mark"]} {name}', flush=True)
            error = _run_test(test, source)
            outcomes.append([name, error])
            if error and request['stop']:
                break
    return outcomes
