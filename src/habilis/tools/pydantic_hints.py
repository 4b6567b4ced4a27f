"""Converts type hints that pydantic does not accept.

Before Python 3.12 pydantic accepts only the `TypedDict` of `typing_extensions`. It accepts `Sequence` but not
`Collection`, which becomes a list.
"""

import collections.abc
import sys
import types
import typing
from typing import Any, cast

import typing_extensions

from habilis.tools.forward_references import class_hints

_LISTS: tuple[object, ...] = (
    collections.abc.Collection,
    collections.abc.Container,
    collections.abc.Reversible,
    collections.abc.KeysView,
    collections.abc.ValuesView,
)


def for_pydantic(hint: object, seen: tuple[object, ...] = ()) -> object:
    """The hint with equivalents for what pydantic does not accept."""
    if sys.version_info < (3, 12) and typing.is_typeddict(cast('type', hint)):
        return _convert_typed_dict(cast('type', hint), seen)
    if hint in _LISTS:
        return list
    origin = cast('Any', typing.get_origin(hint))
    if origin is None or origin is typing.Literal:
        return hint
    arguments = typing.get_args(hint)
    if origin is typing.Annotated:
        return cast('Any', typing.Annotated)[(for_pydantic(arguments[0], seen), *arguments[1:])]
    made = tuple(for_pydantic(argument, seen) for argument in arguments)
    if origin in _LISTS:
        return cast('Any', list)[made] if made else list
    if all(new is old for new, old in zip(made, arguments, strict=True)):
        return hint
    if origin in {typing.Union, types.UnionType}:
        return cast('Any', typing.Union)[made]
    return origin[made[0] if len(made) == 1 else made]


def typed_dict_fields(typed_dict: type) -> dict[str, tuple[object, bool]]:
    """The keys of a `TypedDict`: the hint of each, and whether it is required."""
    required = cast('frozenset[str]', getattr(typed_dict, '__required_keys__', frozenset[str]()))
    found: dict[str, tuple[object, bool]] = {}
    for name, hint in class_hints(typed_dict).items():
        found[name] = _unmarked(hint, name in required)
    return found


def _unmarked(hint: object, needed: bool) -> tuple[object, bool]:
    mark = typing_extensions.get_origin(hint)
    if mark not in _MARKS:
        return hint, needed
    needed = mark is typing_extensions.Required or (needed and mark is not typing_extensions.NotRequired)
    return _unmarked(typing_extensions.get_args(hint)[0], needed)


_MARKS = (typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.ReadOnly)
_cache: dict[type, type] = {}


def _convert_typed_dict(typed_dict: type, seen: tuple[object, ...]) -> object:
    if typed_dict in seen:  # it contains itself: inner ones are only checked to be dicts
        return dict[str, Any]
    if typed_dict not in _cache:
        hints: dict[str, Any] = {}
        for name, (hint, needed) in typed_dict_fields(typed_dict).items():
            inner = for_pydantic(hint, (*seen, typed_dict))
            hints[name] = inner if needed else typing_extensions.NotRequired[cast('Any', inner)]
        made = cast('Any', typing_extensions.TypedDict)(typed_dict.__name__, hints)
        made.__doc__, made.__module__ = typed_dict.__doc__, typed_dict.__module__
        if hasattr(typed_dict, '__pydantic_config__'):
            made.__pydantic_config__ = cast('Any', typed_dict).__pydantic_config__
        _cache[typed_dict] = made
    return _cache[typed_dict]
