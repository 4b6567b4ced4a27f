"""Resolves type hints of classes that are strings and refer to local names.

With `from __future__ import annotations` every hint of a class is a string. The hints of a tool's parameters are
resolved where the tool is defined. Those of a class are resolved later, by pydantic and the stubs, which only see the
names of the module.
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
    """The resolved hints of a class. Raises `ToolDefinitionError` for an unknown name."""
    try:
        return typing_extensions.get_type_hints(kind, include_extras=True)
    except Exception as error:  # the string may be any expression
        msg = f'the type hints of {kind.__name__} cannot be read ({error}); define the types before the tool'
        raise ToolDefinitionError(msg) from error


def resolve_class_hints(hints: Iterable[object], local_names: Mapping[str, object]) -> None:
    """Replace the hints of classes in these hints by the types that they refer to.

    A class whose hints can be resolved in its module is not changed, nor one with an unknown name.
    """
    waiting, seen = list(hints), set[object]()
    while waiting:
        hint = waiting.pop()
        waiting += typing.get_args(hint)
        kind = typing.get_origin(hint) or hint
        if isinstance(kind, type) and kind.__module__ != 'builtins' and kind not in seen and _has_fields(kind):
            seen.add(kind)
            waiting += kind.__bases__
            with contextlib.suppress(Exception):  # the string may be any expression
                waiting += _resolve(kind, local_names).values()


def _has_fields(kind: type) -> bool:
    return typing_extensions.is_typeddict(kind) or hasattr(kind, '_fields') or dataclasses.is_dataclass(kind)


def _resolve(kind: type, local_names: Mapping[str, object]) -> dict[str, Any]:
    try:
        return class_hints(kind)
    except ToolDefinitionError:
        found = typing_extensions.get_type_hints(kind, localns=dict(local_names), include_extras=True)
    kind.__annotations__ = {name: found[name] for name in inspect.get_annotations(kind)}
    for field in cast('dict[str, dataclasses.Field[Any]]', getattr(kind, '__dataclass_fields__', {})).values():
        field.type = found.get(field.name, field.type)
    return found
