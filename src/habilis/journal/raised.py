"""Exceptions as data, and back: of the same class, so that `except` clauses do the same again."""

import builtins
import sys
from collections.abc import Sequence
from typing import cast

from habilis.core import codec
from habilis.core.codec import Json, NotPlain

_DEEP = 8


class StepFailed(Exception):
    """What a step raised in an earlier process, where its class cannot be had here. The message names the class."""


def write_error(error: BaseException, *, depth: int = 0) -> Json:
    """An exception as data."""
    written: dict[str, Json] = {
        'module': type(error).__module__,
        'type': type(error).__qualname__,
        'text': text_of(error),
        'args': _plain(_args_of(error)),
    }
    fields = {name: value for name, value in vars(error).items() if name != 'habilis_paths' and _is_plain(value)}
    if fields:
        written['fields'] = codec.pack(fields)
    if isinstance(error, BaseExceptionGroup) and depth < _DEEP:
        group = cast('BaseExceptionGroup[BaseException]', error)
        written['inner'] = [write_error(each, depth=depth + 1) for each in group.exceptions]
    return written


def _args_of(error: BaseException) -> list[object]:
    """What its class would have to be given."""
    if isinstance(error, BaseExceptionGroup):
        return [cast('BaseExceptionGroup[BaseException]', error).message]
    if isinstance(error, OSError) and error.errno is not None:
        files = [error.filename, None, error.filename2] if error.filename is not None else []
        return [error.errno, error.strerror, *files]
    return list(error.args)


def _plain(values: list[object]) -> Json:
    return codec.pack(values) if _is_plain(values) else None


def _is_plain(value: object) -> bool:
    try:
        codec.pack(value)
    except NotPlain:
        return False
    return True


def read_error(written: Json) -> Exception:
    """The exception again: of the same class if that is loaded here.

    Nothing is imported, and no constructor runs but those of Python's own exceptions: a store must not be able to make
    this process do things.
    """
    fields = written if isinstance(written, dict) else {}
    name, text = str(fields.get('type', 'an error')), str(fields.get('text', ''))
    error = None
    try:
        kind = _loaded(str(fields.get('module')), name)
        if kind is not None:
            error = _made(kind, _arguments(fields, text))
            attributes = codec.unpack(fields.get('fields'))
            if error is not None and isinstance(attributes, dict):
                vars(error).update(cast('dict[str, object]', attributes))
    except (TypeError, ValueError, RecursionError):  # not what `write_error` makes
        error = None
    return StepFailed(f'{name}: {text}') if error is None else error


def _loaded(module: str, name: str) -> type[Exception] | None:
    """A class of a module that was imported. A module may import more when it is asked for a name, so it is not."""
    found: object = sys.modules.get(module)
    for part in name.split('.'):
        found = vars(found).get(part) if found is not None and hasattr(found, '__dict__') else None
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _arguments(fields: dict[str, Json], text: str) -> list[object]:
    args, inner = fields.get('args'), fields.get('inner')
    given: object = [text] if args is None else codec.unpack(args)
    if not isinstance(given, list):
        raise TypeError(given)
    arguments = cast('list[object]', given)
    return [*arguments, [read_error(each) for each in inner]] if isinstance(inner, list) else arguments


def _made(kind: type[Exception], args: Sequence[object]) -> Exception | None:
    """An exception as the nearest of Python's own classes makes it."""
    for base in cast('tuple[type[Exception], ...]', kind.__mro__):
        if vars(builtins).get(base.__name__) is not base or base is object:
            continue
        try:
            error = base.__new__(kind, *args)
            base.__init__(error, *args)
        except TypeError:  # other arguments than it takes, or another layout in memory
            continue
        return error
    return None


def text_of(error: BaseException) -> str:
    """Its message, whatever its class makes of it."""
    try:
        return str(error)
    except Exception:
        return ''
