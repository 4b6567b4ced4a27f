"""Checking a value against a type hint, by pydantic, with the strictness that suits code written by a model.

Text is not a number and `True` is not 1: such mix-ups are mistakes, and code that makes them should learn of it. What
has no form of its own in plain data is converted: a dict to a dataclass or model, a list to a tuple or set, text to an
enum member or date, an int to a float. A pydantic model keeps its own rules.
"""

import collections.abc
import difflib
import json
import types
import typing
from typing import TYPE_CHECKING, Any, cast

from habilis.core.errors import ToolDefinitionError
from habilis.sandbox.previews import shorten
from habilis.tools.pydantic_hints import for_pydantic
from habilis.tools.strictness import Node, field_names, make_strict

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import CoreSchema, ErrorDetails, SchemaValidator

_WRONG_TYPE = ('_type', '_parsing', '_inexact')
_WRONG_VALUE = frozenset({'enum', 'literal_error', 'none_required', 'is_instance_of', 'int_from_float'})
"""How errors of pydantic are called, or end, that say no more than that the type is another."""

_UNKNOWN_KEY = frozenset({'unexpected_keyword_argument', 'extra_forbidden'})
_ONCE: tuple[object, ...] = (
    *(collections.abc.Iterator, collections.abc.Generator, collections.abc.Awaitable, collections.abc.Coroutine),
    *(collections.abc.AsyncIterable, collections.abc.AsyncIterator, collections.abc.AsyncGenerator),
)


class TypeValidator:
    """One type hint, ready to check values. Made once per parameter and result.

    What is given may not have keys that a record lacks. In a result, instances are looked into, and stay as they are.
    """

    def __init__(self, hint: object, text: str, *, result: bool = False) -> None:
        self.text = text
        """The hint, as the model reads it."""

        self.adapter = _adapter(hint)
        self._is_union = _members(hint) > 1
        self._validator = _validator(self.adapter, result)
        self._validate = self._validator.validate_python

    def check(self, value: object) -> object:
        """The value as the hint wants it. Raises pydantic's `ValidationError`."""
        return self._validate(value)

    def check_json(self, value: object) -> object:
        """The same for a value that was read from JSON, where bytes are text, and so is every key."""
        from pydantic import ValidationError

        try:
            return self._validate(value)
        except ValidationError:
            try:
                text = json.dumps(value)
            except (TypeError, ValueError):  # it came from the host, as Python
                text = ''
            if not text:
                raise
            return self._validator.validate_json(text)

    def problems(self, label: str, value: object, error: 'ValidationError') -> list[str]:
        """What is wrong with a value, one line each."""
        details = error.errors(include_url=False, include_context=False)
        if self._is_union:  # the first part of the place is a member then
            details = [detail for detail in details if len(detail['loc']) == 1 and not _is_other(detail)]
        if not details or any(not detail['loc'] and _is_other(detail) for detail in details):
            return [f'{label}: expected {self.text}, got {describe_value(value)}']
        return [self._line(label, detail) for detail in details]

    def _line(self, label: str, detail: 'ErrorDetails') -> str:
        place = () if self._is_union else detail['loc']
        where = label + ''.join(f'[{part}]' if isinstance(part, int) else f'.{part}' for part in place)
        if detail['type'] in _UNKNOWN_KEY:
            near = difflib.get_close_matches(str(detail['loc'][-1]), set(field_names(self.adapter.core_schema)), n=1)
            return f'{where}: there is no such key' + (f'; did you mean {near[0]!r}?' if near else '')
        came = '' if detail['type'] == 'missing' else f', got {describe_value(detail["input"])}'
        return f'{where}: {_one_line(detail["msg"])}{came}'


def describe_value(value: object) -> str:
    """A value and its type, short, on one line."""
    text = shorten(value, 100)
    return text if value is None else f'{text} ({type(value).__name__})'


def _is_other(detail: 'ErrorDetails') -> bool:
    """Whether the value is of another type, so that the hint says all; otherwise it breaks a rule, and that is said."""
    return detail['type'] in _WRONG_VALUE or detail['type'].endswith(_WRONG_TYPE)


def _members(hint: object) -> int:
    """Of a union, without None: pydantic names the members in its errors, which says little."""
    if typing.get_origin(hint) is typing.Annotated:
        return _members(typing.get_args(hint)[0])
    if typing.get_origin(hint) not in {typing.Union, types.UnionType}:
        return 1
    return sum(member is not type(None) for member in typing.get_args(hint))


def _one_line(text: str) -> str:
    return ' '.join(text.split())


def _adapter(hint: object) -> 'TypeAdapter[Any]':
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    name = getattr(hint, '__name__', hint)
    if (typing.get_origin(hint) or hint) in _ONCE:
        msg = f'the type {name} gives its values only once, and cannot cross into a sandbox: use a list'
        raise ToolDefinitionError(msg)
    try:
        adapter = TypeAdapter[Any](cast('Any', for_pydantic(hint)))
        if not adapter.pydantic_complete:  # a name in a class is not known: without this, the first call would say so
            adapter.rebuild(raise_errors=True)
    except (PydanticUserError, NameError, TypeError) as error:
        why = _one_line(str(error).split('For further')[0].split(' Set `arbitrary')[0])
        msg = f'the type {name} cannot be checked: {why}'
        raise ToolDefinitionError(msg) from error
    return adapter


def _validator(adapter: 'TypeAdapter[Any]', result: bool) -> 'SchemaValidator':
    from pydantic_core import SchemaValidator

    return SchemaValidator(cast('CoreSchema', make_strict(cast('Node', adapter.core_schema), result=result)))
