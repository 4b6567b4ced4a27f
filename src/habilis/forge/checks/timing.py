"""Measures how long calls of a tool take in the sandbox, to compare implementations."""

import contextlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from habilis.core.errors import ForgeError
from habilis.core.limits import Limits
from habilis.core.narrowing import is_list
from habilis.forge.checks.agreement import outcomes_of
from habilis.forge.checks.inputs import calls_in, known_inputs, near_inputs
from habilis.forge.checks.verification import guest_code, packages_of, request_of
from habilis.forge.contract import Candidate, require_python
from habilis.forge.source import read_source
from habilis.sandbox import Sandbox

ROUNDS = 7
"""Measurements of each implementation; the median counts."""

LARGER = 30
"""Lists and texts of the tests are also tried so many times as long: that is where algorithms differ."""

_LIMITS = Limits(seconds=30, memory_mb=512)


@dataclass(frozen=True, kw_only=True)
class Timings:
    """How long calls take, of several implementations on the same inputs."""

    inputs: int
    seconds: tuple[tuple[float, ...], ...]
    """Of each implementation: seconds per call in each round."""

    def median(self, which: int) -> float:
        """Seconds per call of one implementation."""
        return statistics.median(self.seconds[which])

    def speedup(self, which: int) -> float:
        """How many times as fast as the first one, by the shortest round of each."""
        return min(self.seconds[0]) / min(self.seconds[which])

    def is_faster(self, which: int) -> bool:
        """Whether it was faster than the first one in all rounds but perhaps one, so hardly by chance."""
        return sum(ratio > 1 for ratio in self._ratios(which)) >= ROUNDS - 1

    def _ratios(self, which: int) -> list[float]:
        return [first / other for first, other in zip(self.seconds[0], self.seconds[which], strict=True)]


async def compare_speed(candidates: Sequence[Candidate]) -> Timings:
    """Time calls with the inputs of the tests, and with generated ones. Raises `ForgeError`.

    The calls are interleaved, so that a busy machine slows all implementations alike.
    """
    for one in candidates:
        require_python(one, 'compared by speed')
        read_source(one.name, one.code)  # an edit by hand may be no Python
    inputs = await _inputs(candidates)
    async with contextlib.AsyncExitStack() as stack:
        sandboxes = [await stack.enter_async_context(await _sandbox(one, inputs)) for one in candidates]
        rounds = [[await _measure(sandbox) for sandbox in sandboxes] for _ in range(ROUNDS)]
    return Timings(inputs=len(inputs), seconds=tuple(zip(*rounds, strict=True)))


async def _inputs(candidates: Sequence[Candidate]) -> list[list[object]]:
    """Inputs for which all give a result."""
    first = candidates[0]
    calls = [call for one in candidates for call in calls_in(one.tests, one.name)]
    usual = near_inputs(first, calls, count=20)
    larger = [[_enlarged(value) for value in one] for one in known_inputs(first, calls)]
    found: list[list[object]] = []
    for batch in (usual, larger):  # apart: larger inputs may exceed the time limit
        distinct = list({repr(one): one for one in batch if one not in found}.values())
        outcomes = [await outcomes_of(candidate, distinct) for candidate in candidates]
        results = zip(distinct, *outcomes, strict=True)
        found += [one for one, *each in results if not any(text.startswith('!') for text in each)]
    if not found:
        msg = f'no input was found for which {first.name} gives a result: add tests that call it with literal values'
        raise ForgeError(msg)
    return found


def _enlarged(value: object) -> object:
    return value * LARGER if isinstance(value, str) or is_list(value) else value


async def _sandbox(candidate: Candidate, inputs: list[list[object]]) -> Sandbox:
    request = {**request_of(candidate), 'inputs': inputs}
    sandbox = await Sandbox.create(
        limits=_LIMITS, packages=packages_of(candidate), variables={'forge_request': request}, checkpoints=False
    )
    await sandbox.run(await guest_code())
    return sandbox


async def _measure(sandbox: Sandbox) -> float:
    cell = await sandbox.run('_time(forge_request)')
    if not isinstance(cell.value, float):
        msg = f'the calls cannot be timed: {cell.error or cell.value}'
        raise ForgeError(msg)
    return cell.value
