"""Hints of classes that are text, and mean names that only the function around a tool knows.

With `from __future__ import annotations` every hint of a class is text. That of a parameter is read where the tool is
made. One inside a class is read later, by pydantic and by the stubs, which know no more than the module.
"""

import contextlib
import dataclasses
import inspect
import typing
from collections.abc import Iterable, Mapping
from typing import Any, cast

import typing_extensions

from habilis.core.errors import ToolDefinitionError


def class_hints(kind: type) -> dict[str, Any]:
    """The hints of a class, also those that are text. Raises `ToolDefinitionError` for a name that is not known."""
    try:
        return typing_extensions.get_type_hints(kind, include_extras=True)
    except Exception as error:  # the text may be any expression
        msg = f'the type hints of {kind.__name__} cannot be read ({error}); define the types before the tool'
        raise ToolDefinitionError(msg) from error


def resolve_class_hints(hints: Iterable[object], local_names: Mapping[str, object]) -> None:
    """Give the classes in these hints the types that their text means, as if it had been no text.

    A class of which the module knows all stays as it is, and so does one with a name that nobody knows.
    """
    waiting, seen = list(hints), set[object]()
    while waiting:
        hint = waiting.pop()
        waiting += typing.get_args(hint)
        kind = typing.get_origin(hint) or hint
        if isinstance(kind, type) and kind not in seen and _has_fields(kind):
            seen.add(kind)
            waiting += kind.__bases__
            with contextlib.suppress(Exception):  # the text may be any expression
                waiting += _settled(kind, local_names).values()


def _has_fields(kind: type) -> bool:
    return typing_extensions.is_typeddict(kind) or hasattr(kind, '_fields') or dataclasses.is_dataclass(kind)


def _settled(kind: type, local_names: Mapping[str, object]) -> dict[str, Any]:
    try:
        return class_hints(kind)
    except ToolDefinitionError:
        found = typing_extensions.get_type_hints(kind, localns=dict(local_names), include_extras=True)
    kind.__annotations__ = {name: found[name] for name in inspect.get_annotations(kind)}
    for field in cast('dict[str, dataclasses.Field[Any]]', getattr(kind, '__dataclass_fields__', {})).values():
        field.type = found.get(field.name, field.type)
    return found
