"""Runs inside the sandbox, after `guest_tests.py`: calls a tool with many inputs, and looks at what it does."""

import copy
import time
import types
import typing
from typing import Any

from habilis.forge.checks.guest_tests import Callable, Request, _load  # pyright: ignore[reportPrivateUsage]


def _is_of(value: Any, hint: object) -> bool:
    """Whether a value has the declared type. A type that cannot be checked fits everything."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union or origin is types.UnionType:
        return any(_is_of(value, one) for one in inner)
    if origin is typing.Literal:
        return value in inner
    if hint is None or hint is types.NoneType:
        return value is None
    if hint is float:
        return isinstance(value, int | float)
    kind = origin or hint
    if not isinstance(kind, type) or kind is object:
        return True
    if not isinstance(value, kind):
        return False
    if kind is tuple and inner and inner[-1] is not ...:
        return len(value) == len(inner) and all(map(_is_of, value, inner))
    parts: Any = value
    if isinstance(value, dict) and len(inner) == 2:
        return all(_is_of(key, inner[0]) and _is_of(item, inner[1]) for key, item in parts.items())
    if isinstance(value, list | tuple | set | frozenset) and inner:
        return all(_is_of(item, inner[0]) for item in parts)
    return True


def _same(one: object, other: object) -> bool:
    return one == other or repr(one) == repr(other) or ' at 0x' in repr(one)


def _properties(  # pyright: ignore[reportUnusedFunction]
    request: Request,
) -> list[list[object]]:
    """For each input: the seconds of the call, the kind of what is wrong with it, and details."""
    function = getattr(_load(request), request['name'])
    try:
        declared = typing.get_type_hints(function).get('return', Any)
    except Exception:
        declared = Any
    outcomes: list[list[object]] = []
    for number, arguments in enumerate(request['inputs']):
        print(f'{request["mark"]} {number}', flush=True)
        outcomes.append(_look_at(function, arguments, declared, again=request['again']))
    return outcomes


def _look_at(
    function: Callable[..., object], arguments: list[object], declared: object, *, again: bool
) -> list[object]:
    given, kept = copy.deepcopy(arguments), copy.deepcopy(arguments)
    started = time.perf_counter()
    try:
        result = function(*given)
        seconds = time.perf_counter() - started
        if not _same(given, kept):
            return [seconds, 'changed', repr(given)[:200]]
        if not _is_of(result, declared):
            return [seconds, 'type', repr(result)[:200]]
        if again and not _same(result, other := function(*copy.deepcopy(arguments))):
            return [seconds, 'differs', f'{result!r:.100} and {other!r:.100}']
    except Exception as error:
        return [time.perf_counter() - started, 'raises', *(one.__name__ for one in type(error).__mro__)]
    return [seconds, '']
