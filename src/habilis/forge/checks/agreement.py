"""Compares implementations on generated inputs. Where they differ, the request is ambiguous."""

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass

from habilis.core.errors import ToolCallError
from habilis.core.limits import Limits
from habilis.core.narrowing import is_dict, is_list, is_tuple
from habilis.forge.checks.calls import call_candidate
from habilis.forge.checks.inputs import far_inputs, near_inputs
from habilis.forge.checks.verification import guest_code, packages_of, request_of
from habilis.forge.contract import Candidate
from habilis.sandbox import Sandbox

_LIMITS = Limits(seconds=5, memory_mb=256)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """An input on which implementations do not agree."""

    call: str
    results: tuple[str, ...]

    @property
    def outcomes(self) -> list[str]:
        """What the implementations do, in words."""
        return [f'raises {one[1:]}' if is_error(one) else f'gives {one[:200]}' for one in self.results]


async def find_difference(
    candidates: Sequence[Candidate], calls: Sequence[str], *, count: int = 25, refusals: bool = True
) -> Difference | None:
    """The first generated call on which the candidates differ; None if they agree on all.

    `calls` are calls of the tests and examples; arguments near theirs are tried before mixtures of them and those that
    only have the type. `refusals`: whether for the latter an error in place of a value is a difference, too.
    """
    if len(candidates) < 2:
        return None
    for make, has_errors in ((near_inputs, True), (far_inputs, refusals)):  # apart: one endless call ends them all
        inputs = make(candidates[0], calls, count=count)
        outcomes = [await outcomes_of(candidate, inputs) for candidate in candidates]
        for arguments, results in zip(inputs, zip(*outcomes, strict=True), strict=True):
            compared = results if has_errors else [one for one in results if not is_error(one)]
            if compared and not _are_equal(compared) and not all(map(is_error, compared)):
                call = shown_call(candidates[0].name, arguments)
                return Difference(call=call, results=tuple(dict.fromkeys(compared)))
    return None


def shown_call(name: str, arguments: Sequence[object]) -> str:
    """A call as it is written."""
    return f'{name}({", ".join(map(repr, arguments))})'


def is_error(outcome: str) -> bool:
    """Whether an outcome is an exception."""
    return outcome.startswith('!')


def _are_equal(results: Sequence[str]) -> bool:
    """Whether results are the same; floats may differ in their last digits, as the order of operations decides them."""
    if len(set(results)) == 1:
        return True
    try:
        first, *others = [ast.literal_eval(result) for result in results]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
    return all(_is_near(first, other) for other in others)


def _is_near(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if (is_list(one) or is_tuple(one)) and (is_list(other) or is_tuple(other)):
        return len(one) == len(other) and all(map(_is_near, one, other))
    if is_dict(one) and is_dict(other):
        return list(one) == list(other) and all(_is_near(one[key], other[key]) for key in one)
    return one == other


async def outcomes_of(candidate: Candidate, inputs: Sequence[Sequence[object]]) -> list[str]:
    """The repr of each result; `!` and the class for an exception."""
    if candidate.language != 'python':
        return [await _outcome(candidate, arguments) for arguments in inputs]
    request = {**request_of(candidate), 'inputs': [list(one) for one in inputs]}
    sandbox = await Sandbox.create(
        limits=_LIMITS, packages=packages_of(candidate), variables={'forge_request': request}, checkpoints=False
    )
    async with sandbox:
        cell = await sandbox.run(f'{await guest_code()}\n_results(forge_request)')
    if cell.error is not None or not is_list(cell.value):
        return [f'!{cell.error.type if cell.error else "no results"}'] * len(inputs)
    return [str(result) for result in cell.value]


async def _outcome(candidate: Candidate, arguments: Sequence[object]) -> str:
    try:
        return repr(await call_candidate(candidate, tuple(arguments), {}))
    except ToolCallError:
        return '!ToolCallError'
