"""Checking a value against a type hint, by pydantic, with the strictness that suits code written by a model.

Text is not a number and `True` is not 1: such mix-ups are mistakes, and code that makes them should learn of it. What
has no form of its own in plain data is converted: a dict to a dataclass or model, a list to a tuple or set, text to an
enum member or date, an int to a float. A pydantic model keeps its own rules.
"""

import reprlib
import types
import typing
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from habilis.core.errors import ToolDefinitionError
from habilis.tools.typed_dicts import modern

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import CoreSchema, SchemaValidator

_STRICT = frozenset({'int', 'str', 'bool', 'float', 'bytes'})
_HOLD_SCHEMAS = frozenset(
    {
        *('schema', 'items_schema', 'keys_schema', 'values_schema', 'extras_schema', 'arguments_schema'),
        *('lax_schema', 'strict_schema', 'json_schema', 'python_schema', 'var_args_schema', 'var_kwargs_schema'),
        *('choices', 'fields', 'definitions', 'steps'),
    }
)
"""Keys of pydantic's schema under which there are more schemas; under other keys there are values of the user."""


class _Short(reprlib.Repr):
    def repr_dict(self, x: dict[object, object], level: int) -> str:
        """In the order that it has, not sorted."""
        if level <= 0:
            return '{...}'
        pairs = [f'{self.repr1(key, level - 1)}: {self.repr1(x[key], level - 1)}' for key in islice(x, self.maxdict)]
        return f'{{{", ".join([*pairs, "..."] if len(x) > self.maxdict else pairs)}}}'


_short = _Short()
_short.maxstring = _short.maxother = 200
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = 20
_short.maxlevel = 4


class Shape:
    """One type hint, ready to check values. Made once per parameter and result."""

    def __init__(self, hint: object, text: str, *, recheck: bool = False) -> None:
        self.text = text
        """The hint, as the model reads it."""

        self.adapter = _adapter(hint)
        self._is_union = _members(hint) > 1
        self._validate = _validator(self.adapter, recheck).validate_python

    def check(self, value: object) -> object:
        """The value as the hint wants it. Raises pydantic's `ValidationError`."""
        return self._validate(value)

    def problems(self, label: str, value: object, error: 'ValidationError') -> list[str]:
        """What is wrong with a value, one line each."""
        details = error.errors(include_url=False, include_context=False)
        if self._is_union or any(not detail['loc'] and detail['type'] != 'value_error' for detail in details):
            return [f'{label}: expected {self.text}, got {show(value)}']
        lines: list[str] = []
        for detail in details:
            where = label + ''.join(f'[{part}]' if isinstance(part, int) else f'.{part}' for part in detail['loc'])
            came = '' if detail['type'] == 'missing' else f', got {show(detail["input"])}'
            lines.append(f'{where}: {_line(detail["msg"])}{came}')
        return lines


def show(value: object) -> str:
    """A value and its type, short, on one line."""
    text = shorten(value, 100)
    return text if value is None else f'{text} ({type(value).__name__})'


def shorten(value: object, length: int) -> str:
    """The start of a value's `repr`, on one line; what is large is not written out whole first."""
    try:
        text = _line(_short.repr(value))
    except Exception:  # a `__repr__` may do anything
        text = f'something ({type(value).__name__})'
    return text if len(text) <= length else f'{text[: length - 1]}…'


def _members(hint: object) -> int:
    """Of a union, without None: pydantic names the members in its errors, which says little."""
    if typing.get_origin(hint) not in {typing.Union, types.UnionType}:
        return 1
    return sum(member is not type(None) for member in typing.get_args(hint))


def _line(text: str) -> str:
    return ' '.join(text.split())


def _adapter(hint: object) -> 'TypeAdapter[Any]':
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(cast('Any', modern(hint)))
    except (PydanticUserError, NameError, TypeError) as error:
        msg = (
            f'the type {getattr(hint, "__name__", hint)} cannot be checked: {_line(str(error).split("For further")[0])}'
        )
        raise ToolDefinitionError(msg) from error


def _validator(adapter: 'TypeAdapter[Any]', recheck: bool) -> 'SchemaValidator':
    from pydantic_core import SchemaValidator

    return SchemaValidator(cast('CoreSchema', _strictly(cast('dict[str, object]', adapter.core_schema), recheck)))


def _strictly(node: dict[str, object], recheck: bool) -> dict[str, object]:
    """A copy of pydantic's schema with our strictness."""
    kind = node.get('type')
    if kind == 'model' or '__pydantic_validator__' in getattr(node.get('cls'), '__dict__', ()):
        return node
    made = {key: _below(value, recheck) if key in _HOLD_SCHEMAS else value for key, value in node.items()}
    if kind in _STRICT:
        made.setdefault('strict', True)
    if kind == 'dataclass' and recheck and _all_fields_are_arguments(node):
        made['revalidate_instances'] = 'always'
    return made


def _below(part: object, recheck: bool) -> object:
    """One schema, several in a list, tuple (with a label) or dict (by name), or something else that stays."""
    if isinstance(part, dict):
        named = cast('dict[str, object]', part)
        if isinstance(named.get('type'), str):
            return _strictly(named, recheck)
        return {name: _below(inner, recheck) for name, inner in named.items()}
    if isinstance(part, list):
        return [_below(inner, recheck) for inner in cast('list[object]', part)]
    if isinstance(part, tuple):
        return tuple(_below(inner, recheck) for inner in cast('tuple[object, ...]', part))
    return part


def _all_fields_are_arguments(node: dict[str, object]) -> bool:
    """Otherwise an instance cannot be made again from its fields."""
    inner = cast('dict[str, object]', node['schema'])
    while 'fields' not in inner and isinstance(inner.get('schema'), dict):
        inner = cast('dict[str, object]', inner['schema'])
    fields = cast('list[dict[str, object]]', inner.get('fields', []))
    return all(field.get('init', True) and not field.get('init_only') for field in fields)
