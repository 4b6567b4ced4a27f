"""Finds code that has the inputs of its tests in a table, and computes nothing."""

import ast
from collections.abc import Iterator, Sequence

from habilis.core.narrowing import is_dict, is_list, is_tuple
from habilis.core.syntax import parse_module
from habilis.forge.checks.agreement import is_error, outcomes_of
from habilis.forge.checks.inputs import far_inputs, known_inputs, near_inputs
from habilis.forge.contract import Candidate

_RESULTS = 3
"""Different results that a table must have: a test of membership, such as `day in WEEKEND`, has fewer."""


async def only_knows(candidate: Candidate, calls: Sequence[str], *, count: int = 25) -> str:
    """What the code does with all inputs but those of the calls, if it has these in a table; empty if it has not.

    The other constants of the code are tried, too: a table may be what a tool is for, and then has more entries.
    """
    if candidate.language != 'python':
        return ''
    known = known_inputs(candidate, calls)
    constants = {repr(one): one for one in _constants(candidate.code)}
    inputs = [*near_inputs(candidate, calls, count=count), *far_inputs(candidate, calls, count=count)]
    inputs += [[one] for one in constants.values() if any([type(one)] == list(map(type, args)) for args in known)]
    others = [arguments for arguments in inputs if arguments not in known]
    results = set(map(_kind, await outcomes_of(candidate, others), others))
    if len(results) != 1:
        return ''
    [usual] = results
    found = zip(await outcomes_of(candidate, known), known, strict=True)
    special = {one: arguments for one, arguments in found if _kind(one, arguments) != usual}
    is_written = all(repr(atom) in constants for arguments in special.values() for atom in atoms_in(arguments))
    return usual if is_written and len(special) >= _RESULTS else ''


def _kind(outcome: str, arguments: Sequence[object]) -> str:
    if is_error(outcome):
        return 'an error'
    return 'its first argument' if arguments and outcome == repr(arguments[0]) else outcome[:100]


def _constants(code: str) -> Iterator[object]:
    for node in ast.walk(parse_module(code)):
        if isinstance(node, ast.Constant):
            yield node.value


def atoms_in(value: object) -> Iterator[object]:
    """The values in a value that are no collections."""
    if is_dict(value):
        value = [*value, *value.values()]
    if is_list(value) or is_tuple(value):
        for item in value:
            yield from atoms_in(item)
    else:
        yield value
