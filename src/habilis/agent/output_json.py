"""Answers as JSON: plain data exactly, objects by their fields."""

import dataclasses
import enum
from typing import Any, cast

from habilis.core import codec
from habilis.core.codec import Json, NotPlain
from habilis.core.errors import DocumentError
from habilis.core.narrowing import is_mapping

_COLLECTIONS: tuple[type[Any], ...] = (list, tuple, set, frozenset)


def pack_output(output: object) -> Json:
    """The answer as JSON types, whatever its type. Raises `DocumentError`."""
    try:
        return codec.pack(_as_data(output, 0))
    except (NotPlain, ValueError) as error:  # pydantic's errors are ValueErrors
        msg = f'this output cannot be written as JSON: {str(error).partition(chr(10))[0]}'
        raise DocumentError(msg) from None


def read_output(packed: Json, kind: Any) -> object:
    """The answer that `pack_output` was given, as the type `kind`; None for plain data. Raises `DocumentError`."""
    from pydantic import TypeAdapter, ValidationError

    try:
        data = codec.unpack(packed)
        return data if kind is None else TypeAdapter[Any](kind).validate_python(data, by_alias=True, by_name=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = '.'.join(map(str, ('output', *first['loc'])))
        msg = f'the output of this result does not match {_name(kind)}: {place}: {first["msg"]}'
        raise DocumentError(msg) from None
    except ValueError as error:
        msg = f'the output of this result is damaged: {error}'
        raise DocumentError(msg) from None


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _as_data(value: object, depth: int) -> object:
    """The value with its objects as dicts of their fields."""
    try:
        codec.pack(value)
    except NotPlain:
        if depth < codec.MAX_DEPTH // 2:
            return _inside(value, depth + 1)
        raise
    return value


def _inside(value: object, depth: int) -> object:
    from pydantic import BaseModel
    from pydantic_core import to_jsonable_python

    if isinstance(value, enum.Enum):
        return _as_data(value.value, depth)
    for collection in _COLLECTIONS:
        if isinstance(value, collection):
            return collection(_as_data(item, depth) for item in cast('list[object]', value))
    if isinstance(value, BaseModel):
        value = {**dict(value), **(value.model_extra or {})}
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    if is_mapping(value):
        return {_as_data(key, depth): _as_data(item, depth) for key, item in value.items()}
    return to_jsonable_python(value)
