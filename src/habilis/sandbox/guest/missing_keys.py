"""What a `KeyError` does not say: which keys there are. Guessing another one costs a step, and often fails again."""

from __future__ import annotations

import ast
import linecache
import types
from itertools import islice
from typing import TYPE_CHECKING, Any

from habilis.sandbox.guest.tracebacks import is_library_file, is_user_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    Position = tuple[int | None, int | None, int | None, int | None]

MAX_KEYS = 20
MAX_CHARACTERS = 60


def existing_keys(error: KeyError) -> str:
    """The keys or columns of what the failed expression of the user looked into, as a hint; empty if unknown."""
    traceback, found = error.__traceback__, None
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        found = traceback if is_user_file(name) and not is_library_file(name) else found
        traceback = traceback.tb_next
    expression = None if found is None else _failed_expression(found)
    while found is not None and expression is not None:
        expression = getattr(expression, 'value', None) or getattr(expression, 'func', None)
        if isinstance(expression, ast.expr) and (known := _keys(_value(expression, found.tb_frame))) is not None:
            return f'({_short(ast.unparse(expression))} has {known})'
    return ''


def _failed_expression(traceback: types.TracebackType) -> ast.expr | None:
    """The expression whose evaluation failed; None before Python 3.11, which has no exact positions."""
    code = traceback.tb_frame.f_code
    positions: Callable[[], Iterable[Position]] | None = getattr(code, 'co_positions', None)
    if positions is None:
        return None
    first, last, start, end = list(positions())[traceback.tb_lasti // 2]
    lines = linecache.getlines(code.co_filename)[first - 1 : last] if first and last and start is not None else []
    if not lines:
        return None
    encoded = [line.encode() for line in lines]
    encoded[-1] = encoded[-1][:end]
    encoded[0] = encoded[0][start:]
    try:
        return ast.parse(b'(' + b''.join(encoded) + b')', mode='eval').body
    except (SyntaxError, ValueError):
        return None


def _value(expression: ast.expr, frame: types.FrameType) -> object:
    """The value, if it can be had without running code: a variable, or a part of plain dicts and lists."""
    if isinstance(expression, ast.Name):
        return frame.f_locals.get(expression.id, frame.f_globals.get(expression.id))
    if isinstance(expression, ast.Subscript) and isinstance(expression.slice, ast.Constant):
        outer: Any = _value(expression.value, frame)
        key: Any = expression.slice.value
        kind = _kind(outer)
        if kind is dict or (kind is list and type(key) is int and -len(outer) <= key < len(outer)):
            return outer.get(key) if kind is dict else outer[key]
    return None


def _keys(value: Any) -> str | None:
    kind = _kind(value)
    if kind is dict:
        return _listed('keys', value)
    if kind.__module__.partition('.')[0] == 'pandas' and kind.__name__ == 'DataFrame':
        return _listed('columns', value.columns)
    return None


def _kind(value: object) -> type[object]:
    return type(value)


def _listed(name: str, keys: Collection[object]) -> str:
    if not len(keys):
        return f'no {name}'
    more = f' and {len(keys) - MAX_KEYS:,} more' if len(keys) > MAX_KEYS else ''
    return f'the {name} {", ".join(_short(repr(key)) for key in islice(keys, MAX_KEYS))}{more}'


def _short(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f'{text[: MAX_CHARACTERS - 1]}…'
