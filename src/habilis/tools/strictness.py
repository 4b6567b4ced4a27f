"""Makes pydantic as strict as tools need it, by rewriting its core schemas.

Pydantic's public strict mode cannot be used: for Python values it also refuses a list for a tuple, a dict for a
dataclass, and text for a date or an enum member, which is all that plain data has for them. And there is no public way
to be strict about the numbers inside a dataclass, to refuse its unknown keys, or to check an instance without making it
again. The form of core schemas may change with any minor version of pydantic: see `pydantic_forms.py`.
"""

import re
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from habilis.core.narrowing import expect, expect_list, fields_in, is_dict, is_list, is_tuple, items_in

if TYPE_CHECKING:
    from pydantic_core import PydanticKnownError
    from typing_extensions import TypeIs

_STRICT = frozenset({'int', 'str', 'bool', 'float', 'bytes'})
_HOLD_SCHEMAS = frozenset(
    {
        *('schema', 'items_schema', 'keys_schema', 'values_schema', 'extras_schema', 'arguments_schema'),
        *('lax_schema', 'strict_schema', 'json_schema', 'python_schema', 'var_args_schema', 'var_kwargs_schema'),
        *('choices', 'fields', 'definitions', 'steps'),
    }
)
"""Keys of a core schema that contain schemas; other keys may contain values of the user."""

_PLAIN = frozenset({bool, int, float, str})
_TIMES = {'date': 'date_type', 'datetime': 'datetime_type', 'time': 'time_type'}
_NUMBER = re.compile(r'\s*[+-]?\d+(\.\d*)?\s*')

Node = dict[str, object]


def is_node(part: object) -> 'TypeIs[Node]':
    """Whether a part of a core schema is a schema, or has schemas by name."""
    return isinstance(part, dict)


def _nodes_in(part: object) -> list[Node]:
    return [item for item in items_in(part) if is_node(item)]


def make_strict(node: Node, *, result: bool) -> Node:
    """A strict copy of a core schema. A pydantic model keeps its own rules."""
    kind = expect(node.get('type'), str)
    if kind == 'model' or '__pydantic_validator__' in getattr(node.get('cls'), '__dict__', ()):
        return node
    made = {key: _make_inner_strict(value, result) if key in _HOLD_SCHEMAS else value for key, value in node.items()}
    if kind in _STRICT:
        made.setdefault('strict', True)
    elif kind == 'generator':  # it would validate each item only when the tool reads it
        made['type'] = 'list'
    elif kind == 'literal' or (kind == 'enum' and not _has_own_lookup(expect(node['cls'], type))):
        return _before(_refuse_other_types(expect_list(node.get('expected', node.get('members')))), made)
    elif kind in _TIMES:
        return _before(_refuse_timestamps(_TIMES[kind]), made)
    elif kind == 'timedelta':
        return _before(_refuse_bool, made)
    elif kind == 'dataclass':
        return _instance(made) if result else _forbid_extras(made)
    elif kind == 'typed-dict' and not result:
        return _forbid_extras(made)
    return made


def node_types(part: object) -> set[str]:
    """The types of all nodes of a schema, those inside models included."""
    found: set[str] = set()
    if is_node(part):
        kind = part.get('type')
        found |= {kind} if isinstance(kind, str) else set()
        parts: Iterable[object] = [item for key, item in part.items() if key in _HOLD_SCHEMAS or kind is None]
    else:
        parts = part if is_list(part) or is_tuple(part) else ()
    return found.union(*map(node_types, parts))


def field_names(part: object) -> Iterable[str]:
    """The names of all fields of records in a schema."""
    if is_node(part):
        fields = part.get('fields')
        if part.get('type') in {'typed-dict', 'model-fields'}:
            yield from fields_in(fields)
        elif part.get('type') == 'dataclass-args':
            yield from (expect(field['name'], str) for field in _nodes_in(fields))
        for key, inner in part.items():
            if key in _HOLD_SCHEMAS or part.get('type') is None:
                yield from field_names(inner)
    elif is_list(part) or is_tuple(part):
        for inner in part:
            yield from field_names(inner)


def _make_inner_strict(part: object, result: bool) -> object:
    """Make schemas strict: one, or several in a list, tuple or dict. Other values stay as they are."""
    if is_node(part):
        if isinstance(part.get('type'), str):
            return make_strict(part, result=result)
        return {name: _make_inner_strict(inner, result) for name, inner in part.items()}
    if is_list(part):
        return [_make_inner_strict(inner, result) for inner in part]
    if is_tuple(part):
        return tuple(_make_inner_strict(inner, result) for inner in part)
    return part


def _around(how: str, function: Callable[..., object], node: Node) -> Node:
    """A schema with a validator function; its `ref` moves to the outermost schema."""
    made: Node = {'type': f'function-{how}', 'function': {'type': 'no-info', 'function': function}, 'schema': node}
    if 'ref' in node:
        made['ref'] = node.pop('ref')
    return made


def _before(function: Callable[[object], object], node: Node) -> Node:
    return _around('before', function, node)


# Scalars ------------------------------------------------------------------------------------------------------------


def _refuse_other_types(members: list[object]) -> Callable[[object], object]:
    """Refuse equal values of other types for a literal or enum: `True`, 1.0 and '1' are not 1."""
    values: list[object] = [member.value if isinstance(member, Enum) else member for member in members]
    refused = _PLAIN - {type(value) for value in values}
    if float not in refused:
        refused -= {int}
    expected = ' or '.join(dict.fromkeys(map(repr, values)))

    def check(value: object) -> object:
        if type(value) in refused:
            raise _error('literal_error', {'expected': expected})
        return value

    return check


def _has_own_lookup(kind: type) -> bool:
    return any('_missing_' in base.__dict__ for base in kind.__mro__ if base is not Enum)


def _refuse_timestamps(error: str) -> Callable[[object], object]:
    """Refuse numbers for dates, also in strings: they are hardly meant as Unix timestamps."""

    def check(value: object) -> object:
        if isinstance(value, (int, float, bytes)) or (isinstance(value, str) and _NUMBER.fullmatch(value)):
            raise _error(error)
        return value

    return check


def _refuse_bool(value: object) -> object:
    if isinstance(value, bool):
        raise _error('time_delta_type')
    return value


def _error(kind: str, context: dict[str, Any] | None = None) -> 'PydanticKnownError':
    from pydantic_core import PydanticKnownError

    return PydanticKnownError(cast('Any', kind), context)


# Records --------------------------------------------------------------------------------------------------------------


def _forbid_extras(node: Node) -> Node:
    """Refuse unknown keys of a dataclass or `TypedDict`, unless its own configuration sets `extra`."""
    if 'extra' in getattr(node.get('cls'), '__pydantic_config__', ()):
        return node
    if node['type'] == 'dataclass':
        node['config'] = {'extra_fields_behavior': 'forbid', **fields_in(node.get('config'))}
        return _drop_computed(node)
    if node.get('extra_behavior') == 'ignore':
        node['extra_behavior'] = 'forbid'
    return node


def _drop_computed(node: Node) -> Node:
    """Drop fields that are not arguments: code may pass on a result of a tool, which contains them."""
    fields = _nodes_in(fields_in(node['schema']).get('fields'))
    computed = {field['name'] for field in fields if not field.get('init', True)}
    if not computed:
        return node

    def drop(value: object) -> object:
        return {key: item for key, item in value.items() if key not in computed} if is_dict(value) else value

    return _before(drop, node)


def _instance(node: Node) -> Node:
    """Validate the fields of a dataclass instance in a result without replacing it."""
    inner = fields_in(node['schema'])
    fields = _nodes_in(inner.get('fields'))
    if inner.get('type') != 'dataclass-args' or not all(_is_readable(field) for field in fields):
        return node
    kind = expect(node['cls'], type)

    def check(value: object, check_fields: Callable[[object], tuple[dict[str, object], object, object]]) -> object:
        if isinstance(value, kind):
            check_fields(value)
            return value
        if not is_dict(value):
            raise _error('dataclass_type', {'class_name': kind.__name__})
        return kind(**check_fields(value)[0])

    by_name = {field['name']: {'type': 'model-field', 'schema': field['schema']} for field in fields}
    read: Node = {'type': 'model-fields', 'fields': by_name, 'from_attributes': True}
    if 'ref' in node:
        read['ref'] = node['ref']
    return _around('wrap', check, read)


def _is_readable(field: Node) -> bool:
    """Whether a field has the same name as attribute and as argument."""
    return bool(field.get('init', True)) and not field.get('init_only') and 'validation_alias' not in field
