"""Encodes replies, cells and results as JSON that later versions can read."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

from habilis.agent.context.output import OutputType
from habilis.agent.contract import Result
from habilis.core import codec
from habilis.core.codec import Json, NotPlain
from habilis.core.errors import NotDurable
from habilis.journal import Codec
from habilis.models.contract import Message

T = TypeVar('T')


class DataCodec(Codec[T], Generic[T]):
    """Encodes frozen dataclasses by their fields. Values that are not plain data become their `repr`."""

    def __init__(self, kind: type[T], *, what: str) -> None:
        super().__init__(what=what)
        self._kind = kind

    def write(self, value: T) -> Json:
        """See `Codec`."""
        return codec.pack(to_plain(value))

    def read(self, written: Json) -> T:
        """See `Codec`."""
        try:
            return from_plain(self._kind, codec.unpack(written))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            msg = f'a {self._kind.__name__} was saved as something that no longer fits: {error}'
            raise NotDurable(msg) from None


_RESULT = DataCodec(Result[Any], what='a result')


class ResultCodec(Codec[Result[Any]]):
    """Encodes results, with the output by the output type of the agent."""

    def __init__(self, output: OutputType) -> None:
        super().__init__(what='a result')
        self._output: Codec[object] = Codec(output.kind, what='the output of an agent')

    def write(self, value: Result[Any]) -> Json:
        """See `Codec`."""
        return {'r': _RESULT.write(replace(value, output=None)), 'o': self._output.write(value.output)}

    def read(self, written: Json) -> Result[Any]:
        """See `Codec`."""
        return replace(_rest_of(written), output=self._output.read(cast('dict[str, Json]', written).get('o')))


def messages_of(written: Json) -> tuple[Message, ...]:
    """The messages of an encoded result, whatever its output is."""
    return _rest_of(written).messages


def _rest_of(written: Json) -> Result[Any]:
    """A result without its output."""
    return _RESULT.read(written.get('r') if isinstance(written, dict) else None)


_ATOMS = frozenset({str, int, float, bool, type(None)})


def to_plain(value: object) -> object:
    """Dataclasses as dicts of the fields that differ from their defaults; plain data as it is."""
    kind = type(value)
    if kind in _ATOMS:  # the common case
        return value
    if dataclasses.is_dataclass(kind):
        plain: dict[str, object] = {}
        for name, field in _fields(kind):
            own: object = getattr(value, name)
            if own != _default(field):
                plain[name] = to_plain(own)
        return plain
    if isinstance(value, tuple):
        return tuple(to_plain(item) for item in cast('tuple[object, ...]', value))
    if isinstance(value, list):
        return [to_plain(item) for item in cast('list[object]', value)]
    if isinstance(value, Mapping):
        return {_key(key): to_plain(item) for key, item in cast('Mapping[object, object]', value).items()}
    return _plain_or_text(value)


@cache
def _fields(kind: type) -> 'tuple[tuple[str, dataclasses.Field[Any]], ...]':
    return tuple((field.name, field) for field in dataclasses.fields(kind))


def _key(key: object) -> object:
    return _plain_or_text(key)


def _plain_or_text(value: object) -> object:
    try:
        codec.pack(value)
    except NotPlain:
        return repr(value)
    return value


def _default(field: 'dataclasses.Field[Any]') -> object:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return dataclasses.MISSING


def from_plain(kind: Any, data: Any) -> Any:
    """Rebuild a dataclass. Fields that this version does not know are ignored."""
    origin = get_origin(kind)
    if origin in {typing.Union, types.UnionType}:
        if data is None:
            return None
        inner = [option for option in get_args(kind) if dataclasses.is_dataclass(option)]
        return from_plain(inner[0], data) if inner else data
    if origin is tuple:
        return tuple(from_plain(get_args(kind)[0], item) for item in data)
    if origin is not None and isinstance(data, dict) and len(get_args(kind)) == 2:
        items = cast('dict[object, Any]', data)
        return {key: from_plain(get_args(kind)[1], items[key]) for key in items}
    cls: Any = origin or kind
    if not dataclasses.is_dataclass(cls):
        return cast('object', data)
    hints = _hints(cast('type', cls))
    known = {field.name for field in dataclasses.fields(cls)}
    given = cast('dict[str, Any]', data).items()
    values = {name: from_plain(hints[name], item) for name, item in given if name in known}
    return cast('type', cls)(**values)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
