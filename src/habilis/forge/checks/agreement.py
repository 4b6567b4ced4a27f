"""Compares implementations on generated inputs. Where they differ, the request is ambiguous."""

import ast
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, Literal, get_args, get_origin

from habilis.core.errors import ToolCallError
from habilis.core.limits import Limits
from habilis.core.narrowing import is_dict, is_list, is_tuple
from habilis.core.syntax import parse_expression, parse_module
from habilis.forge.annotations import read_parameters
from habilis.forge.checks.calls import call_candidate
from habilis.forge.checks.verification import guest_code, packages_of, request_of
from habilis.forge.contract import Candidate
from habilis.forge.source import definition_of
from habilis.sandbox import Sandbox

_LIMITS = Limits(seconds=5, memory_mb=256)
_TEXTS = ('', 'a', 'hello world', 'Ab 12', 'ünïcode', 'aa bb aa', 'x,y;z', '  padded ')
_NUMBERS = (0, 1, 2, 3, 5, 7, 10, -1, -4, 12, 100)


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
    candidates: Sequence[Candidate], calls: Sequence[str], *, count: int = 25
) -> Difference | None:
    """The first generated call on which the candidates differ; None if they agree on all.

    `calls` are calls of the tests and examples; arguments near theirs are tried before those that only have the type.
    """
    if len(candidates) < 2:
        return None
    name = candidates[0].name
    inputs = generate_inputs(candidates[0], calls, count=count)
    outcomes = [await outcomes_of(candidate, inputs) for candidate in candidates]
    for index, arguments in enumerate(inputs):
        results = [outcome[index] for outcome in outcomes]
        if not _are_equal(results) and not all(map(is_error, results)):
            return Difference(call=shown_call(name, arguments), results=tuple(dict.fromkeys(results)))
    return None


def shown_call(name: str, arguments: Sequence[object]) -> str:
    """A call as it is written."""
    return f'{name}({", ".join(map(repr, arguments))})'


def is_error(outcome: str) -> bool:
    """Whether an outcome is an exception."""
    return outcome.startswith('!')


def calls_in(tests: str, name: str) -> list[str]:
    """The calls of a function in its tests; none if they are not Python."""
    try:
        tree = parse_module(tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


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


def generate_inputs(candidate: Candidate, calls: Sequence[str], *, count: int) -> list[list[object]]:
    """Arguments for calls, the same each time: those given, changed a little; or any of the right types."""
    chance = random.Random(candidate.name)
    parameters = _required(candidate)
    known = known_inputs(candidate, calls)
    near = [[_changed(value, chance) for value in chance.choice(known)] for _ in range(count if known else 0)]
    typed = [[_value(one.annotation, chance) for one in parameters] for _ in range(0 if known else count)]
    return [*known, *near, *typed]


def known_inputs(candidate: Candidate, calls: Sequence[str]) -> list[list[object]]:
    """The arguments of those calls that have literals only."""
    number = len(_required(candidate))
    return [arguments for call in calls if (arguments := _literal_arguments(call, number)) is not None]


def _required(candidate: Candidate) -> list[Parameter]:
    return [
        one
        for one in read_parameters(definition_of(candidate)).parameters.values()
        if one.kind is Parameter.POSITIONAL_OR_KEYWORD and one.default is Parameter.empty
    ]


def _literal_arguments(call: str, number: int) -> list[object] | None:
    try:
        node = parse_expression(call).body
        if isinstance(node, ast.Call) and not node.keywords and len(node.args) >= number:
            return [ast.literal_eval(argument) for argument in node.args]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    return None


def _changed(value: object, chance: random.Random) -> object:
    """A value of the same shape, a little different."""
    match value:
        case bool():
            return chance.random() < 0.5
        case int():
            return value + chance.choice((0, 0, 1, -1, 2, 10))
        case float():
            return value + chance.choice((0.0, 0.5, -1.0, 10.0))
        case str():
            letters = chance.sample(value, len(value))
            return ''.join(letters[: chance.choice((len(value), max(len(value) - 1, 0)))])
        case _ if is_list(value) or is_tuple(value):
            items = [_changed(item, chance) for item in value]
            kept = items[: chance.choice((len(items), max(len(items) - 1, 1)))]
            return kept if is_list(value) else tuple(items)
        case _ if is_dict(value):
            return {key: _changed(item, chance) for key, item in value.items()}
        case _:
            return value


def _value(hint: Any, chance: random.Random) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is bool:
        return chance.random() < 0.5
    if hint is float:
        return chance.choice((0.0, 1.5, -2.0, 10.0, 0.1))
    if hint is str:
        return chance.choice(_TEXTS)
    if hint is bytes:
        return chance.choice(_TEXTS).encode()
    if hint is None:
        return None
    if origin is Literal:
        return chance.choice(inner)
    if origin is tuple and inner and inner[-1] is not ...:
        return tuple(_value(one, chance) for one in inner)
    if origin is tuple or hint is tuple:
        return tuple(_value(list[inner[:1] or (int,)], chance))
    if origin is set or hint is set:
        return set(_value(list[inner or (int,)], chance))
    if origin is list or hint is list:
        return [_value(inner[0] if inner else int, chance) for _ in range(chance.choice((0, 1, 2, 3, 5)))]
    if origin is dict or hint is dict:
        keys, values = inner if len(inner) == 2 else (str, int)
        return {_value(keys, chance): _value(values, chance) for _ in range(chance.choice((0, 1, 2, 3)))}
    if inner:
        return _value(chance.choice([one for one in inner if one is not type(None)] or [int]), chance)
    return chance.choice(_NUMBERS)
