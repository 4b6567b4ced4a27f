"""Measures whether tests can fail: how many wrong variants of the code (mutants) they notice."""

from collections.abc import Sequence
from dataclasses import replace

from habilis.core.narrowing import is_list, is_tuple
from habilis.forge.checks.agreement import is_error, outcomes_of, shown_call
from habilis.forge.checks.inputs import calls_in, far_inputs, near_inputs
from habilis.forge.checks.mutants import mutants
from habilis.forge.checks.verification import LIMITS, verify_all
from habilis.forge.contract import Candidate, Mutant, MutationScore
from habilis.forge.javascript.mutants import mutants as javascript_mutants

KILL_SHARE = 0.8
"""Share of the mutants that tests must notice."""

MUTANT_SECONDS = 0.5
"""A mutant that takes longer, and longer than ten times the code itself, loops for ever: it counts as noticed."""

INPUTS = 100
"""Generated inputs on which a mutant is compared with the code."""

SHORT = range(1, 6)
"""Lengths of what is also tried in place of longer lists and texts: results of short inputs can be worked out."""


async def mutation_score(candidate: Candidate, *, seconds: float, limit: int = 50) -> MutationScore:
    """How many wrong variants of the code its tests notice. `seconds`: how long they take on the right code.

    If too few are noticed, those do not count that do the same as the code: no test could notice them.
    """
    variants = (javascript_mutants if candidate.language == 'javascript' else mutants)(candidate.code, limit=limit)
    limits = replace(LIMITS, seconds=max(MUTANT_SECONDS, 10 * seconds))
    wrong = [replace(candidate, code=variant.code) for variant in variants]
    results = await verify_all(wrong, limits=limits, stop=True)
    survivors = [variant for variant, result in zip(variants, results, strict=True) if result.ok]
    killed, calls = len(variants) - len(survivors), list[str]()
    if killed < KILL_SHARE * len(variants) and candidate.language == 'python':
        survivors, calls = await _look_closer(candidate, survivors)
    changes = tuple(variant.change for variant in survivors)
    return MutationScore(killed=killed, total=killed + len(changes), survivors=changes, calls=tuple(calls))


async def _look_closer(candidate: Candidate, variants: Sequence[Mutant]) -> tuple[list[Mutant], list[str]]:
    """The variants without those that are known to do the same as the code, and a call for each other that shows it.

    `if number >= best: best = number` does the same: it gives the same results for generated inputs, near those of the
    tests and of the right types, although some of these inputs reach the place where a difference is possible. Nothing
    is known of a variant that they do not reach.
    """
    calls = calls_in(candidate.tests, candidate.name)
    near = near_inputs(candidate, calls, count=INPUTS)
    inputs = [*near, *_shortened(near), *far_inputs(candidate, calls, count=INPUTS)]
    right = await outcomes_of(candidate, inputs)
    kept, shortest = list[Mutant](), dict[str, None]()
    for variant in variants:
        results = await outcomes_of(replace(candidate, code=variant.code), inputs)
        if results != right:
            shown = [
                shown_call(candidate.name, one)
                for one, *pair in zip(inputs, right, results, strict=True)
                if pair[0] != pair[1] and not is_error(pair[0])
            ]
            shortest |= dict.fromkeys(sorted(shown, key=len)[:1])
        elif variant.boundary and await outcomes_of(replace(candidate, code=variant.boundary), inputs) != right:
            continue
        kept.append(variant)
    return kept, list(shortest)


def _shortened(inputs: Sequence[Sequence[object]]) -> list[list[object]]:
    return [
        [
            value[:length] if isinstance(value, str) or is_list(value) or is_tuple(value) else value
            for value in arguments
        ]
        for length in SHORT
        for arguments in inputs
    ]
