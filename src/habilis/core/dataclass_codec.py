"""Encodes frozen dataclasses as JSON that later versions can read: replies, cells, results."""

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from habilis.core import codec
from habilis.core.codec import Json, NotPlain
from habilis.core.errors import NotDurable
from habilis.core.integers import safe_repr
from habilis.core.narrowing import is_list, is_mapping, is_tuple

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar('T')


class DataclassCodec(Generic[T]):
    """Encodes the fields that differ from their defaults.

    Decoding ignores fields that this version does not know, and validates the others by their types. Values in fields
    of type `object` are decoded exactly, as `core.codec` encodes them; what is not plain data becomes its `repr`.
    """

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind

    @cached_property
    def _adapter(self) -> 'TypeAdapter[T]':
        from pydantic import TypeAdapter  # imported when first needed: it takes longer than the rest of the room

        return TypeAdapter(self._kind)

    def to_dict(self, value: T) -> dict[str, Any]:
        """The fields that differ from their defaults, nested dataclasses as dicts too."""
        return self._adapter.serializer.to_python(value, exclude_defaults=True, warnings=False)

    def from_dict(self, fields: object) -> T:
        """The dataclass with these fields. Raises `ValueError` with the field that is wrong."""
        from pydantic import ValidationError

        try:
            return self._adapter.validate_python(fields)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = '.'.join(str(part) for part in first['loc'])
            raise ValueError(f'{place}: {first["msg"]}' if place else first['msg']) from None

    def encode(self, value: T) -> Json:
        """The value as JSON types. Raises `NotDurable`."""
        try:
            return pack_or_repr(self.to_dict(value))
        except (NotPlain, ValueError) as error:
            msg = f'this {self._kind.__name__} cannot be saved: {error}'
            raise NotDurable(msg) from None

    def decode(self, written: Json) -> T:
        """The value that `encode` was given. Raises `NotDurable`."""
        try:
            return self.from_dict(codec.unpack(written))
        except ValueError as error:
            msg = f'this saved {self._kind.__name__} cannot be read; it is damaged, or of another version: {error}'
            raise NotDurable(msg) from None


def pack_or_repr(value: object) -> Json:
    """The value as JSON types. Parts that are not plain data become their `repr`, dataclasses become dicts."""
    try:
        return codec.pack(value)
    except NotPlain:
        return codec.pack(_without_objects(value, 0))


def _without_objects(value: object, depth: int) -> object:
    if depth < codec.MAX_DEPTH // 2:  # packing a dict may take two levels
        if is_tuple(value):
            return tuple(_without_objects(item, depth + 1) for item in value)
        if is_list(value):
            return [_without_objects(item, depth + 1) for item in value]
        if is_mapping(value):
            return {_plain_or_repr(key): _without_objects(item, depth + 1) for key, item in value.items()}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return _without_objects(fields, depth + 1)
    return _plain_or_repr(value)


def _plain_or_repr(value: object) -> object:
    try:
        codec.pack(value)
    except NotPlain:
        return safe_repr(value)
    return value
