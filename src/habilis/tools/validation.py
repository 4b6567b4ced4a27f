"""Validates values against type hints with pydantic, strictly enough for code written by a model.

A string is not a number and `True` is not 1: such values are errors of the code. Types without a form in plain data are
converted: a dict to a dataclass or model, a list to a tuple or set, a string to an enum member or date, an int to a
float. A pydantic model keeps its own rules.
"""

import collections.abc
import json
import types
import typing
from typing import TYPE_CHECKING, Any, cast

from habilis.core.errors import ToolDefinitionError
from habilis.core.previews import shorten
from habilis.core.similar_names import similar_names
from habilis.tools.number_sizes import MAX_DIGITS, is_too_large
from habilis.tools.pydantic_forms import check_pydantic
from habilis.tools.pydantic_hints import for_pydantic
from habilis.tools.strictness import Node, field_names, make_strict, node_types

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import CoreSchema, ErrorDetails, SchemaValidator

_WRONG_TYPE = ('_type', '_parsing', '_inexact')
_WRONG_VALUE = frozenset({'enum', 'literal_error', 'none_required', 'is_instance_of', 'int_from_float'})
"""Error types of pydantic, or their endings, which only say that the value has another type."""

MAX_ERRORS = 10_000
"""Maximum number of errors that are read one by one; a million of them would take seconds."""

_UNKNOWN_KEY = frozenset({'unexpected_keyword_argument', 'extra_forbidden'})
_ONE_SHOT_TYPES: tuple[object, ...] = (
    *(collections.abc.Iterator, collections.abc.Generator, collections.abc.Awaitable, collections.abc.Coroutine),
    *(collections.abc.AsyncIterable, collections.abc.AsyncIterator, collections.abc.AsyncGenerator),
)


class TypeValidator:
    """Validates values of one type hint. Created once per parameter and result.

    Unknown keys of records are refused in arguments. Instances in results are validated, but not replaced.
    """

    def __init__(self, hint: object, text: str, *, result: bool = False) -> None:
        self.text = text
        """The hint as the model sees it."""

        check_pydantic(_validate)
        self.adapter = _adapter(hint)
        self._is_union = _members(hint) > 1
        self._validator = _validator(self.adapter, result)
        self._validate = self._validator.validate_python
        self._checks_sizes = not result  # a result comes from the tool, not from code
        self._has_decimals = 'decimal' in node_types(self.adapter.core_schema)

    def check(self, value: object) -> object:
        """Validate and convert a value. Raises pydantic's `ValidationError`."""
        self._check_sizes(value)
        return self._validate(value)

    def convert(self, value: object) -> object:
        """The same with the conversions of pydantic, such as text to a number."""
        self._check_sizes(value)
        return self.adapter.validate_python(value)

    def _check_sizes(self, value: object) -> None:
        if self._checks_sizes and type(value) is not str and is_too_large(value, integers=self._has_decimals):
            from pydantic_core import PydanticCustomError, ValidationError

            error = PydanticCustomError('number_size', cast('Any', f'a number has more than {MAX_DIGITS:,} digits'))
            raise ValidationError.from_exception_data(self.text, [{'type': error, 'input': value}])

    def check_json(self, value: object) -> object:
        """The same for a value from JSON, where bytes and all keys are strings."""
        from pydantic import ValidationError

        self._check_sizes(value)
        try:
            return self._validate(value)
        except ValidationError:
            try:
                text = json.dumps(value)
            except (TypeError, ValueError):  # not JSON, but a Python value of the host
                text = ''
            if not text:
                raise
            return self._validator.validate_json(text)

    def problems(self, label: str, value: object, error: 'ValidationError') -> list[str]:
        """The problems of a value, one line each."""
        if error.error_count() > MAX_ERRORS:
            return [f'{label}: expected {self.text}, got {describe_value(value)}']
        details = error.errors(include_url=False, include_context=False)
        if self._is_union:  # the first part of the location is a member of the union
            details = [detail for detail in details if len(detail['loc']) == 1 and not _is_other(detail)]
        if not details or any(not detail['loc'] and _is_other(detail) for detail in details):
            return [f'{label}: expected {self.text}, got {describe_value(value)}']
        return [self._line(label, detail) for detail in details]

    def _line(self, label: str, detail: 'ErrorDetails') -> str:
        place = () if self._is_union else detail['loc']
        where = label + ''.join(f'[{part}]' if isinstance(part, int) else f'.{part}' for part in place)
        if detail['type'] in _UNKNOWN_KEY:
            near = similar_names(str(detail['loc'][-1]), set(field_names(self.adapter.core_schema)), n=1)
            return f'{where}: there is no such key' + (f'; did you mean {near[0]!r}?' if near else '')
        came = '' if detail['type'] == 'missing' else f', got {describe_value(detail["input"])}'
        return f'{where}: {_one_line(detail["msg"])}{came}'


def describe_value(value: object) -> str:
    """A short text of a value and its type."""
    text = shorten(value, 100)
    return text if value is None else f'{text} ({type(value).__name__})'


def _is_other(detail: 'ErrorDetails') -> bool:
    """Whether the value has another type, for which the hint is the best message."""
    return detail['type'] in _WRONG_VALUE or detail['type'].endswith(_WRONG_TYPE)


def _members(hint: object) -> int:
    """The number of members of a union, without None."""
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
    if (typing.get_origin(hint) or hint) in _ONE_SHOT_TYPES:
        msg = f'the type {name} can be iterated only once, and cannot go into a sandbox: use a list'
        raise ToolDefinitionError(msg)
    try:
        adapter = TypeAdapter[Any](cast('Any', for_pydantic(hint)))
        if not adapter.pydantic_complete:  # raise for unknown names now instead of at the first call
            adapter.rebuild(raise_errors=True)
    except (PydanticUserError, NameError, TypeError) as error:
        why = _one_line(str(error).split('For further')[0].split(' Set `arbitrary')[0])
        msg = f'the type {name} cannot be validated: {why}'
        raise ToolDefinitionError(msg) from error
    return adapter


def _validator(adapter: 'TypeAdapter[Any]', result: bool) -> 'SchemaValidator':
    from pydantic_core import SchemaValidator

    return SchemaValidator(cast('CoreSchema', make_strict(cast('Node', adapter.core_schema), result=result)))


def _validate(hint: object, value: object, result: bool) -> object:
    return _validator(_adapter(hint), result).validate_python(value)
