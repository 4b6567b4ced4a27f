"""Inputs that tools are tried with: the arguments of their tests, changed ones, and any of the right types."""

import ast
import random
import re
from collections.abc import Sequence
from inspect import Parameter
from typing import Any, Literal, get_args, get_origin

from habilis.core.narrowing import is_dict, is_list, is_tuple
from habilis.core.syntax import parse_expression, parse_module
from habilis.forge.annotations import read_parameters
from habilis.forge.contract import Candidate
from habilis.forge.source import definition_of

_TEXTS = ('', 'a', 'hello world', 'Ab 12', 'ünïcode', 'aa bb aa', 'x,y;z', '  padded ')
_NUMBERS = (0, 1, 2, 3, 5, 7, 10, -1, -4, 12, 100)
_TOKEN = re.compile(r'\w+|\W')


def near_inputs(candidate: Candidate, calls: Sequence[str], *, count: int) -> list[list[object]]:
    """The arguments of calls, and as they are after a small change. The same each time, like all inputs.

    If no call has literals only, they are any values of the right types.
    """
    chance = random.Random(candidate.name)
    if not (known := known_inputs(candidate, calls)):
        return _typed(candidate, chance, count)
    return [*known, *([_changed(value, chance) for value in chance.choice(known)] for _ in range(count))]


def far_inputs(candidate: Candidate, calls: Sequence[str], *, count: int) -> list[list[object]]:
    """Mixtures of the arguments of several calls, and as many inputs that only have the right types."""
    chance = random.Random(f'{candidate.name} far')
    known = known_inputs(candidate, calls)
    mixed: list[list[object]] = []
    for _ in range(count if known else 0):
        one, other = chance.choice(known), chance.choice(known)
        pairs = zip(one, [*other, *one[len(other) :]], strict=False)
        mixed.append([_mixed(*pair, chance) for pair in pairs])
    return [*mixed, *_typed(candidate, chance, count)]


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


def _mixed(value: object, other: object, chance: random.Random) -> object:
    """A part of one value and a part of another, or one of them as it is written rarely."""
    match value, other:
        case str(), str():
            one, two = _TOKEN.findall(value), _TOKEN.findall(other)
            spliced = ''.join(one[: chance.randint(0, len(one))] + two[chance.randint(0, len(two)) :])
            return chance.choice((spliced, spliced, spliced, value.swapcase(), f' {value} ', f'{value}{other}'))
        case (int() | float(), int() | float()) if not isinstance(value, bool):
            return chance.choice((value, other, -value, value * 10, 0))
        case _ if is_list(value) and is_list(other):
            spliced = value[: chance.randint(0, len(value))] + other[chance.randint(0, len(other)) :]
            return chance.choice((spliced, spliced, value[::-1], value + other))
        case _:
            return chance.choice((value, other))


def _typed(candidate: Candidate, chance: random.Random, count: int) -> list[list[object]]:
    return [[_value(one.annotation, chance) for one in _required(candidate)] for _ in range(count)]


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
