"""Checks a tool beyond its tests, on generated inputs of the declared types.

Its results have the declared type, the same call gives the same, arguments are not changed, and what it does not accept
it refuses with an error that is meant: a `ValueError`, or one that its code, docstring or tests name.
"""

import ast
import secrets
import statistics
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import cast

from habilis.core.limits import Limits
from habilis.core.syntax import parse_module
from habilis.forge.checks.inputs import calls_in, far_inputs, known_inputs, near_inputs
from habilis.forge.checks.verification import guest_code, packages_of, request_of
from habilis.forge.contract import Candidate, Findings
from habilis.forge.source import definition_of
from habilis.sandbox import Cell, Sandbox

LIMITS = Limits(seconds=5, memory_mb=256)
"""Of all calls together."""

COUNT = 20
"""Inputs near those of the tests, as many mixtures of these, and as many that only have the declared types."""

SLOW_SECONDS = 0.1
"""A call that takes longer is noted."""

_REFUSALS = frozenset({'ValueError', 'ArithmeticError', 'NotImplementedError'})
"""Errors, and classes derived from them, that are an answer to values that a function does not accept."""

_UNSTEADY = frozenset({'random', 'secrets', 'uuid', 'time', 'now', 'today', 'utcnow', 'urandom', 'getrandom'})
"""Modules and methods whose results differ from call to call."""


async def check_properties(candidate: Candidate) -> Findings:
    """What is wrong with a candidate that passes its tests.

    Refused: a result that is not of the declared type on an input of the tests, arguments that are changed, two results
    of the same call. Noted: the rest, since nobody has said what should happen there.
    """
    calls = list(dict.fromkeys(calls_in(candidate.tests, candidate.name)))
    known = known_inputs(candidate, calls)
    inputs = [*near_inputs(candidate, calls, count=COUNT), *far_inputs(candidate, calls, count=COUNT)]
    if not inputs:
        return Findings()
    mark = secrets.token_hex(8)
    again = not is_unsteady(candidate.code)
    request = {**request_of(candidate), 'inputs': inputs, 'mark': mark, 'again': again}
    sandbox = await Sandbox.create(
        limits=LIMITS, packages=packages_of(candidate), variables={'forge_request': request}, checkpoints=False
    )
    async with sandbox:
        cell = await sandbox.run(f'{await guest_code()}\n{_guest_properties()}\n_properties(forge_request)')
    shown = [f'{candidate.name}({", ".join(map(repr, one))})'[:200] for one in inputs]
    if cell.error is not None or not isinstance(cell.value, list):
        return Findings(noted=(_why_stopped(cell, mark, shown),))
    outcomes = [
        (str(kind), float(seconds), [*map(str, more)]) for seconds, kind, *more in cast('list[list[str]]', cell.value)
    ]
    return _findings(candidate, shown, outcomes, known=len(known))


Outcome = tuple[str, float, list[str]]
"""What is wrong with a call, its seconds, and details."""


def _findings(candidate: Candidate, shown: Sequence[str], outcomes: Sequence[Outcome], *, known: int) -> Findings:
    refused, noted = dict[str, str](), dict[str, str]()  # one of each kind is enough
    meant = _named_errors(candidate) | {
        name for kind, _, more in outcomes[:known] if kind == 'raises' for name in more[:1]
    }
    for index, (call, (kind, _, more)) in enumerate(zip(shown, outcomes, strict=True)):
        match kind:
            case 'changed':
                refused.setdefault(kind, f'{call} changes its arguments, to {more[0]}: work on a copy')
            case 'differs':
                refused.setdefault(kind, f'{call} gives different results for the same call: {more[0]}')
            case 'type':
                text = f'{call} returns {more[0]}, which is not of the declared type: correct the code or the type hint'
                (refused if index < known else noted).setdefault(kind, text)
            case 'raises' if not {*more} & (_REFUSALS | meant):
                noted.setdefault(f'{kind} {more[0]}', f'{call} raises {more[0]}')
            case _:
                continue
    slowest = statistics.median(seconds for _, seconds, _ in outcomes)
    if slowest > SLOW_SECONDS:
        noted['slow'] = f'a call takes {slowest:.1f} s'
    return Findings(refused=tuple(refused.values()), noted=tuple(noted.values()))


def is_unsteady(code: str) -> bool:
    """Whether the code uses random numbers or the clock, so that two calls may differ."""
    nodes = list(ast.walk(parse_module(code)))
    imported = {alias.name.partition('.')[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {(node.module or '').partition('.')[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    return bool(_UNSTEADY & (imported | {node.attr for node in nodes if isinstance(node, ast.Attribute)}))


def _named_errors(candidate: Candidate) -> set[str]:
    """Names of errors that the code raises, or that its docstring or tests name."""
    words = {
        node.id
        for source in (candidate.code, candidate.tests)
        for node in ast.walk(parse_module(source))
        if isinstance(node, ast.Name)
    }
    documented = ast.get_docstring(definition_of(candidate)) or ''
    return {
        word for word in words | {*documented.replace('`', ' ').replace('.', ' ').split()} if word.endswith('Error')
    }


@cache
def _guest_properties() -> str:
    """Source of what runs inside. Its import of our own is there already."""
    source = files('habilis.forge.checks').joinpath('guest_properties.py').read_text(encoding='utf-8')
    return '\n'.join(line for line in source.splitlines() if not line.startswith('from habilis'))


def _why_stopped(cell: Cell, mark: str, shown: Sequence[str]) -> str:
    started = [line.removeprefix(mark).strip() for line in cell.stdout.splitlines() if line.startswith(mark)]
    last = started[-1] if started else ''
    where = shown[int(last)] if last.isdigit() and int(last) < len(shown) else 'the code'
    return f'{where} does not end well on generated inputs: {cell.error}'
