"""Runs the tests of candidates, each in a fresh sandbox."""

import ast
import asyncio
import base64
import secrets
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.resources import files

from habilis.core.limits import Limits
from habilis.core.narrowing import items_in
from habilis.core.syntax import parse_module
from habilis.forge.contract import Candidate, TestOutcome, Verification
from habilis.forge.javascript.definition import has_function
from habilis.sandbox import Cell, Sandbox

LIMITS = Limits(seconds=10, memory_mb=256)
"""Of all tests of a candidate together."""

PARALLEL = 4
"""Sandboxes at a time, for several candidates and mutants."""

_COMPILE = """
import marshal, sys
[sys.hexversion, marshal.dumps(compile(source, 'guest_tests.py', 'exec'))]
"""
_LOAD = """
import binascii, marshal, sys
is_known = sys.hexversion == {version}
exec(marshal.loads(binascii.a2b_base64({data!r})) if is_known else compile({source!r}, 'guest_tests.py', 'exec'))
"""


async def guest_code() -> str:
    """Code that loads what runs inside the sandbox. It is compiled once, there: parsing takes longer than tests.

    A sandbox with another Python compiles it again.
    """
    if not (known := _compiled()):
        source = files('habilis.forge.checks').joinpath('guest_tests.py').read_text(encoding='utf-8')
        async with await Sandbox.create(variables={'source': source}, checkpoints=False) as sandbox:
            cell = await sandbox.run(_COMPILE)
        match cell.value:
            case [int(version), bytes(compiled)]:
                data = base64.b64encode(compiled).decode()
                known.append(_LOAD.format(version=version, data=data, source=source))
            case _:  # no memory, or no time
                return source
    return known[0]


@cache
def _compiled() -> list[str]:
    return []


async def verify(candidate: Candidate, *, limits: Limits = LIMITS, stop: bool = False) -> Verification:
    """Run the tests. `stop`: at the first failure."""
    if candidate.language == 'javascript':
        from habilis.forge.javascript import running  # not above: it loads the engine and the downloader

        return await running.verify(candidate, used_tools(candidate), limits=limits, stop=stop)
    if problem := _syntax_problem(candidate):
        return Verification(error=problem)
    mark = secrets.token_hex(8)
    request = {**request_of(candidate), 'tests': candidate.tests, 'mark': mark, 'stop': stop}
    sandbox = await Sandbox.create(
        limits=limits, packages=packages_of(candidate), variables={'forge_request': request}, checkpoints=False
    )
    async with sandbox:
        cell = await sandbox.run(f'{await guest_code()}\n_run(forge_request)')
    return _read(cell, mark)


async def verify_all(
    candidates: Iterable[Candidate], *, limits: Limits = LIMITS, stop: bool = False
) -> list[Verification]:
    """Verify several candidates at the same time, each in a sandbox of its own."""
    slots = asyncio.Semaphore(PARALLEL)

    async def one(candidate: Candidate) -> Verification:
        async with slots:
            return await verify(candidate, limits=limits, stop=stop)

    return list(await asyncio.gather(*(one(candidate) for candidate in candidates)))


async def passes_when_wrong(candidate: Candidate) -> str:
    """What a function does that is obviously wrong and passes the tests; empty if there is none. Such tests prove
    nothing."""
    for what, code in _wrong_implementations(candidate).items():
        if (await verify(replace(candidate, code=code), stop=True)).ok:
            return what
    return ''


def _wrong_implementations(candidate: Candidate) -> dict[str, str]:
    """Functions that take anything, by what they do; none if the code has no such function."""
    name = candidate.name
    if candidate.language == 'javascript':
        results = ('null', 'args[0] ?? null') if has_function(name, candidate.code) else ()
        codes = [f'export function {name}(...args) {{\n  return {result};\n}}\n' for result in results]
    else:
        functions = (node for node in parse_module(candidate.code).body if isinstance(node, ast.FunctionDef))
        results = ('None', '[*args, *kwargs.values()][0]') if any(one.name == name for one in functions) else ()
        codes = [f'def {name}(*args, **kwargs):\n    return {result}\n' for result in results]
    return dict(zip(('does nothing', 'returns its first argument'), codes, strict=False))


def request_of(candidate: Candidate) -> dict[str, object]:
    """What the guest needs to load the candidate."""
    library = [[tool.name, tool.code] for tool in used_tools(candidate)]
    return {'library': library, 'name': candidate.name, 'code': candidate.code}


def _syntax_problem(candidate: Candidate) -> str:
    for source, what in ((candidate.code, 'the code'), (candidate.tests, 'the tests')):
        try:
            parse_module(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return f'{what}: {type(error).__name__}: {error}'
    return ''


def packages_of(candidate: Candidate) -> list[str]:
    """Packages of the candidate and of all that it uses."""
    return list(dict.fromkeys([*candidate.packages, *(one for tool in used_tools(candidate) for one in tool.packages)]))


def used_tools(candidate: Candidate) -> list[Candidate]:
    """What the candidate uses, each after what it uses itself."""
    ordered: dict[str, Candidate] = {}

    def add(tool: Candidate) -> None:
        for used in tool.uses.values():
            if used.name not in ordered:
                add(used)
                ordered[used.name] = used

    add(candidate)
    return list(ordered.values())


def _read(cell: Cell, mark: str) -> Verification:
    if cell.error is not None:
        return Verification(error=_why_stopped(cell, mark), seconds=cell.seconds)
    tests: list[TestOutcome] = []
    for outcome in items_in(cell.value):
        match outcome:
            case [str(name), str(error)]:
                tests.append(TestOutcome(name=name, error=error))
            case _:
                return Verification(error='the code changed the results of its tests', seconds=cell.seconds)
    return Verification(tests=tuple(tests), seconds=cell.seconds)


def _why_stopped(cell: Cell, mark: str) -> str:
    assert cell.error is not None
    started = [line.removeprefix(mark).strip() for line in cell.stdout.splitlines() if line.startswith(mark)]
    where = f'in {started[-1]}: ' if started and cell.error.kind not in ('exception', 'syntax') else ''
    return f'{where}{cell.error}'
