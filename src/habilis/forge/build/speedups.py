"""Asks a model for a faster version of a tool, and keeps it only if it is the same and measurably faster."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from habilis.core.errors import ForgeError
from habilis.forge.build.requests import StageConversation, code_block, functions_in, prompt
from habilis.forge.checks.agreement import find_difference
from habilis.forge.checks.inputs import calls_in
from habilis.forge.checks.review import review_code
from habilis.forge.checks.timing import compare_speed
from habilis.forge.checks.verification import verify
from habilis.forge.contract import Candidate
from habilis.forge.library.library import Library
from habilis.forge.library.revisions import Revision, revise
from habilis.forge.source import read_source
from habilis.models.contract import Model

MIN_SPEEDUP = 1.2
"""Minimum speedup of a new version that is kept."""

TRIES = 3
_INPUTS = 100
"""Generated inputs on which the new version must agree with the old one."""


@dataclass(frozen=True, kw_only=True)
class Optimised:
    """Outcome of an optimisation."""

    revision: Revision | None = None
    """The faster version; None if none was found."""

    speedup: float = 1.0
    reason: str = ''
    """Why the last attempt was not kept."""


async def optimise(
    library: Library, model: Model, name: str, *, watch: Callable[[str], None] = lambda _: None
) -> Optimised:
    """Replace a tool by a faster version that passes all its tests and gives the same results; the old one stays.

    `watch` is told why an attempt was not kept. Raises `ForgeError` if the tool cannot be measured.
    """
    old, version = library.candidate(name), library.current(name)
    await compare_speed([old])  # a tool that cannot be timed costs no request
    calls = list(dict.fromkeys(calls_in(old.tests, name)))
    shown = '\n'.join(f'- {call[:200]}' for call in calls[:5]) or '- (unknown)'
    talk, text, reason = StageConversation(model, 'optimise'), prompt('optimise').format(code=old.code, calls=shown), ''
    for _ in range(TRIES):
        code = code_block(await talk.say(text))
        try:
            speedup = await _speedup(library, old, code, calls)
        except ForgeError as error:
            reason = str(error)
            watch(reason)
            text = prompt('optimise_again').format(reason=reason[:2000])
            continue
        note = f'{speedup:.1f} times as fast as version {version}'
        revision = await revise(library, name, code, note=note, origin=model.name)
        return Optimised(revision=revision, speedup=speedup)
    return Optimised(reason=reason)


async def _speedup(library: Library, old: Candidate, code: str, calls: list[str]) -> float:
    """How many times as fast the new code is. Raises `ForgeError` if it is not to be kept."""
    name = old.name
    if name not in functions_in(code):
        msg = f'there is no function {name} in the reply'
        raise ForgeError(msg)
    if read_source(name, code).signature != read_source(name, old.code).signature:
        msg = 'its signature is another one'
        raise ForgeError(msg)
    if refused := review_code(code).refused:
        raise ForgeError(refused[0])
    new = replace(old, code=code, uses=library.uses_of(code, name))
    passed = await verify(new)
    if not passed.ok:
        msg = f'its tests fail:\n{passed.report}'
        raise ForgeError(msg)
    difference = await find_difference([old, new], calls, count=_INPUTS)
    if difference is not None:
        was, now = difference.outcomes
        msg = f'{difference.call[:200]} {was} with the old version, and {now} with the new one'
        raise ForgeError(msg)
    timings = await compare_speed([old, new])
    speedup = timings.speedup(1)
    if speedup < MIN_SPEEDUP or not timings.is_faster(1):
        msg = f'it is only {speedup:.2f} times as fast; {MIN_SPEEDUP} times is the minimum'
        raise ForgeError(msg)
    return speedup
