"""JSON schemas as Python type hints, from which the stubs and the validation of tools follow.

A hint may be looser than its schema, never stricter: what the schema allows passes and arrives unchanged, and the
server checks the rest. A schema whose type cannot be told is refused (`SchemaRefused`), not guessed.
"""

import json
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, cast

import typing_extensions

from habilis.core.narrowing import is_list, is_mapping, items_in
from habilis.tools.mcp.descriptions import clean_line

MAX_DEPTH = 40

Schema = Mapping[str, object]

_SIMPLE: Mapping[str, object] = {'string': str, 'integer': int, 'number': int | float, 'boolean': bool, 'null': None}
_LITERALS = (str, int, bool, type(None))
_LIMITS = {
    'minimum': '>=',
    'maximum': '<=',
    'exclusiveMinimum': '>',
    'exclusiveMaximum': '<',
    'multipleOf': 'a multiple of',
    'minLength': 'length >=',
    'maxLength': 'length <=',
    'pattern': 'matches',
    'minItems': 'length >=',
    'maxItems': 'length <=',
    'format': 'format',
}
"""Keywords that are told to the model. The server enforces them."""

_NOTES = ('description', 'title', 'default', 'examples')
_SIMPLE_KEYS = {'type', *_NOTES, *_LIMITS}
_CHOICES = ('anyOf', 'oneOf', 'enum', 'const')
_UNKNOWN = ('$dynamicRef', '$recursiveRef')


class SchemaRefused(ValueError):
    """A schema that cannot be shown as a type hint, with the reason."""


class SchemaTypes:
    """The type hints of one schema and its definitions."""

    def __init__(self, root: Schema, classes: dict[object, object] | None = None) -> None:
        """`classes` are those made of other schemas before: equal ones are the same class."""
        self._root = root
        self._classes = {} if classes is None else classes

    def properties(self) -> tuple[dict[str, Schema], frozenset[str], bool]:
        """The properties of an object, those that are required, and whether others are expected."""
        whole = self._flat(self._root, ())
        if whole.get('type', 'object') != 'object':
            msg = f'its arguments are {whole.get("type")!r}, not an object'
            raise SchemaRefused(msg)
        named = {name: _schema(inner) for name, inner in _mapping(whole, 'properties').items()}
        required = frozenset(_texts(whole, 'required'))
        for name in required - named.keys():
            named[name] = {}
        return named, required, bool(whole.get('additionalProperties', False))

    def hint(self, schema: object, name: str = 'Value', seen: tuple[str, ...] = ()) -> object:
        """The type hint of a schema, with what it says of the value. `name` is that of a class made of it."""
        if schema is True:
            return Any
        if not is_mapping(schema):
            msg = f'{name}: {json.dumps(schema)[:50]} is a schema that no value fits'
            raise SchemaRefused(msg)
        described = _schema(schema)
        kind = described.get('type')
        if isinstance(kind, str) and kind in _SIMPLE and described.keys() <= _SIMPLE_KEYS:  # most are
            plain = _SIMPLE[kind]
        else:
            plain = self._plain(described, name, seen)
        said = _note(described)
        return Annotated[cast('Any', plain), said] if said else plain

    def accepts_null(self, schema: Schema) -> bool:
        """Whether None is a value of its own, beside leaving it out."""
        flat = self._flat(schema, ())
        if isinstance(flat.get('type'), str) and flat.keys().isdisjoint(_CHOICES):
            return flat['type'] == 'null'
        kinds = flat.get('type', 'null' if flat.keys().isdisjoint(_CHOICES) else '')
        members = [*_schemas(flat, 'anyOf'), *_schemas(flat, 'oneOf')]
        named = None in items_in(flat.get('enum'))
        is_const = 'const' in flat and flat['const'] is None
        in_kinds = 'null' in kinds if is_list(kinds) else kinds == 'null'
        return in_kinds or named or is_const or any(self.accepts_null(member) for member in members)

    def _plain(self, schema: Schema, name: str, seen: tuple[str, ...]) -> object:
        if len(seen) > MAX_DEPTH:
            msg = f'{name} is nested too deep'
            raise SchemaRefused(msg)
        if isinstance(reference := schema.get('$ref'), str):
            if reference in seen:
                msg = f'{reference} refers to itself'
                raise SchemaRefused(msg)
            name, seen = reference.rpartition('/')[2] or name, (*seen, reference)
        flat = self._flat(schema, seen[:-1] if '$ref' in schema else seen)
        inner = (*seen, '')
        for key in ('anyOf', 'oneOf'):
            if key in flat:
                rest = {other: value for other, value in flat.items() if other not in {key, *_NOTES}}
                return _union(self.hint(_merge(rest, one), name, inner) for one in _schemas(flat, key))
        if 'const' in flat or 'enum' in flat:
            return _choices([flat['const']] if 'const' in flat else items_in(flat['enum']))
        kinds = flat.get('type', _implied(flat))
        hints = [self._of_type(kind, flat, name, inner) for kind in (kinds if is_list(kinds) else [kinds])]
        return _union([*hints, None] if flat.get('nullable') is True else hints)

    def _of_type(self, kind: object, schema: Schema, name: str, seen: tuple[str, ...]) -> object:
        if kind is None:
            return Any
        if kind == 'array':
            return self._list(schema, name, seen)
        if kind == 'object':
            return self._record(schema, name, seen)
        if not isinstance(kind, str) or kind not in _SIMPLE:
            msg = f'{name} has the unknown type {json.dumps(kind)[:50]}'
            raise SchemaRefused(msg)
        return _SIMPLE[kind]

    def _list(self, schema: Schema, name: str, seen: tuple[str, ...]) -> object:
        items = schema.get('items', True)
        first = cast('Sequence[object]', schema.get('prefixItems', items if is_list(items) else ()))
        rest = [] if items is False or is_list(items) else [items]
        if not first and not rest:
            return list[Any]
        return list[cast('Any', _union(self.hint(one, f'{name}Item', seen) for one in (*first, *rest)))]

    def _record(self, schema: Schema, name: str, seen: tuple[str, ...]) -> object:
        properties, more = _mapping(schema, 'properties'), schema.get('additionalProperties', True)
        if not properties:
            values = Any if more is False or 'patternProperties' in schema else self.hint(more, f'{name}Value', seen)
            return dict[str, cast('Any', values)]
        required = {*_texts(schema, 'required')}
        fields: dict[str, Any] = {}
        for key, inner in properties.items():
            hint = cast('Any', self.hint(inner, f'{name}_{key}', seen))
            fields[key] = hint if key in required else typing_extensions.NotRequired[hint]
        title = schema.get('title')
        called = _class_name(title if isinstance(title, str) else name)
        key = (called, tuple(fields.items()), more is False)
        if key not in self._classes:
            made = cast('Any', typing_extensions.TypedDict)(called, fields)
            made.__pydantic_config__ = {'extra': 'forbid' if more is False else 'allow'}
            self._classes[key] = made
        return self._classes[key]

    def _flat(self, schema: Schema, seen: tuple[str, ...]) -> Schema:
        """The schema with its reference and the members of `allOf` in one."""
        if unknown := [key for key in _UNKNOWN if key in schema]:
            msg = f'it uses {unknown[0]}'
            raise SchemaRefused(msg)
        if '$ref' not in schema and 'allOf' not in schema:
            return schema
        found = dict(schema)
        reference = found.pop('$ref', None)
        merged: dict[str, object] = {}
        if isinstance(reference, str):
            if reference in seen:
                msg = f'{reference} refers to itself'
                raise SchemaRefused(msg)
            seen = (*seen, reference)
            merged = dict(self._flat(self._target(reference), seen))
        for member in _schemas({'allOf': found.pop('allOf', [])}, 'allOf'):
            merged = _merge(merged, self._flat(member, seen))
        return _merge(merged, found)

    def _target(self, reference: str) -> Schema:
        if not reference.startswith('#'):
            msg = f'it refers to another document: {reference[:100]}'
            raise SchemaRefused(msg)
        found = cast('object', self._root)
        for part in reference[1:].split('/')[1:]:
            key = part.replace('~1', '/').replace('~0', '~')
            if is_list(found):
                found = found[int(key)] if key.isdecimal() and int(key) < len(found) else None
            else:
                found = found.get(key) if is_mapping(found) else None
        if not is_mapping(found):
            msg = f'there is no {reference[:100]} in it'
            raise SchemaRefused(msg)
        return _schema(found)


def optional(hint: object) -> object:
    """The hint, or None."""
    return _union([hint, None])


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """A Python identifier for any name; another one for each of several names."""
    made = re.sub(r'\W+', '_', name, flags=re.ASCII).strip('_') or 'value'
    made = f'_{made}' if made[0].isdigit() else made
    base = found = f'{made}_' if keyword.iskeyword(made) else made
    count, known = 1, {*taken}
    while found in known:
        count += 1
        found = f'{base}{count}'
    return found


def _merge(one: Mapping[str, object], other: Mapping[str, object]) -> dict[str, object]:
    """A schema that both describe. Where they differ, either may be right only if one is silent."""
    merged = {**one, **other}
    for key in ('properties', '$defs'):
        if key in one and key in other:
            merged[key] = {**_mapping(one, key), **_mapping(other, key)}
    if 'required' in one and 'required' in other:
        merged['required'] = [*_texts(one, 'required'), *_texts(other, 'required')]
    first, second = one.get('type'), other.get('type')
    if first is not None and second is not None and first != second:
        if {*_kinds(first), *_kinds(second)} != {'integer', 'number'}:
            msg = f'it must be {first!r} and {second!r} at once'
            raise SchemaRefused(msg)
        merged['type'] = 'integer'
    for key in ('anyOf', 'oneOf'):
        if key in one and key in other:
            msg = f'it has {key} twice'
            raise SchemaRefused(msg)
    return merged


def _kinds(kind: object) -> list[str]:
    return [str(one) for one in kind] if is_list(kind) else [str(kind)]


def _implied(schema: Schema) -> str | None:
    """The type that other keywords tell; None for any."""
    if 'properties' in schema or 'additionalProperties' in schema:
        return 'object'
    return 'array' if 'items' in schema or 'prefixItems' in schema else None


def _choices(values: Sequence[object]) -> object:
    if not values:
        msg = 'it has an enum without values'
        raise SchemaRefused(msg)
    if all(isinstance(value, _LITERALS) for value in values):
        return Literal[tuple(values)]  # pyright: ignore[reportInvalidTypeForm]
    return _union(cast('object', type(value)) if value is not None else None for value in values)


def _union(hints: Iterable[object]) -> object:
    found = list(hints)
    if not found:
        msg = 'it has no alternative'
        raise SchemaRefused(msg)
    if any(hint is Any for hint in found):
        return Any
    return cast('object', Union[tuple(found)])  # noqa: UP007


def _note(schema: Schema) -> str:
    description = schema.get('description')
    said = clean_line(description) if isinstance(description, str) else ''
    if schema.keys().isdisjoint(_LIMITS):
        return said
    limits = [
        f'{words} {schema[key]}' for key, words in _LIMITS.items() if isinstance(schema.get(key), str | int | float)
    ]
    return '; '.join(filter(None, (said, clean_line(', '.join(limits)))))


def _class_name(name: str) -> str:
    words = re.split(r'[\W_]+', name[:60], flags=re.ASCII)
    return identifier(''.join(word[:1].upper() + word[1:] for word in words)) or 'Value'


def _schema(value: object) -> Schema:
    """The value, if it is an object of JSON: its keys are texts."""
    return cast('Schema', value) if isinstance(value, dict) else {}


def _mapping(schema: Schema, key: str) -> Schema:
    found = schema.get(key, {})
    if not is_mapping(found):
        msg = f'{key} is not an object'
        raise SchemaRefused(msg)
    return _schema(found)


def _schemas(schema: Schema, key: str) -> list[Schema]:
    found = schema.get(key, [])
    if not is_list(found):
        msg = f'{key} is not a list'
        raise SchemaRefused(msg)
    return [_schema(one) for one in found]


def _texts(schema: Schema, key: str) -> list[str]:
    found = schema.get(key, [])
    return [one for one in found if isinstance(one, str)] if is_list(found) else []
