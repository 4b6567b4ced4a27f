"""Values of steps as JSON, without pickle: `Codec` encodes them exactly, `fingerprint` makes digests of inputs."""

import dataclasses
import enum
import hashlib
import json
import os
from collections import deque
from collections.abc import Iterable, Set
from typing import Any, Generic, TypeGuard, TypeVar, cast

from pydantic import BaseModel, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from habilis.core import codec
from habilis.core.codec import Json, NotPlain
from habilis.core.errors import NotDurable
from habilis.core.narrowing import is_mapping

T = TypeVar('T')


class Codec(Generic[T]):
    """Encodes values of one type. Plain data needs no type; dataclasses and pydantic models need a type hint.

    Plain data is encoded exactly (tuples, bytes, dates), anything else as pydantic does.
    """

    def __init__(self, kind: Any = None, *, what: str = 'the value') -> None:
        self._what = what
        self._adapter: TypeAdapter[T] | None = None
        self._why_not = ''
        if kind is not None and kind is not Any and kind is not type(None):
            try:
                adapter: TypeAdapter[T] = TypeAdapter(kind)
                adapter.rebuild()  # raises if a name in it is undefined
                self._adapter = adapter
            except (PydanticSchemaGenerationError, PydanticUserError, NameError) as error:
                # It matters only for values that are not plain data.
                self._why_not = f'; its type hint cannot be used: {_line(error)}'

    def write(self, value: T) -> Json:
        """Encode a value as JSON. Raises `NotDurable`."""
        try:
            written: dict[str, Json] = {'p': codec.pack(value)}
        except NotPlain as not_plain:
            written = self._write_typed(value, not_plain)
        if self._adapter is None:
            return written
        try:
            again = self._read(written)
        except (ValidationError, ValueError) as error:
            raise self._refused(value, _line(error)) from None
        if 't' in written and type(again) is not type(value):
            raise self._refused(value, f'it would be decoded as {type(again).__qualname__}')
        return written

    def _write_typed(self, value: T, not_plain: NotPlain) -> dict[str, Json]:
        if self._adapter is None:
            raise self._refused(value, not_plain)
        try:
            return {'t': codec.pack(self._adapter.dump_python(value, mode='json', warnings='error'))}
        except (PydanticSerializationError, PydanticUserError, ValueError, TypeError) as error:
            raise self._refused(value, _line(error)) from None

    def read(self, written: Json) -> T:
        """Decode a value. Raises `NotDurable` if it no longer matches its type."""
        if not isinstance(written, dict) or ('p' not in written and 't' not in written):
            msg = f'{self._what} was not saved by a `Codec`'
            raise NotDurable(msg)
        if 'p' not in written and self._adapter is None:
            msg = f'{self._what} was saved with a type hint that the code no longer has: add it again'
            raise NotDurable(msg)
        try:
            return self._read(written)
        except (ValidationError, ValueError) as error:
            msg = f'{self._what} was saved, but no longer matches its type: {_line(error)}'
            raise NotDurable(msg) from None

    def _read(self, written: dict[str, Json]) -> T:
        plain = codec.unpack(written['p'] if 'p' in written else written['t'])
        if self._adapter is None:
            return cast('T', plain)
        if 'p' in written:
            return self._adapter.validate_python(plain)
        try:
            text = json.dumps(plain)  # not `dump`: a field may be NaN
        except ValueError:  # an integer that has more digits than JSON is read with
            return self._adapter.validate_python(plain)
        return self._adapter.validate_json(text)

    def as_replayed(self, value: T, written: Json) -> T:
        """The value as a replay returns it: a subclass of a plain type, for example, becomes that type."""
        return self.read(written) if isinstance(written, dict) and 'p' in written else value

    def _refused(self, value: object, why: object) -> NotDurable:
        return NotDurable(
            f'{self._what} cannot be saved, because its type is {type(value).__qualname__} ({why}){self._why_not}; '
            'return plain data, or a dataclass or pydantic model with a return type hint'
        )


PLAIN: Codec[object] = Codec()


def plain_value(written: Json) -> object:
    """What a `Codec` has written, without its type: a dataclass is a dict. Raises `NotDurable`."""
    fields = written if isinstance(written, dict) else {}
    return PLAIN.read({'p': fields['t']} if 't' in fields and 'p' not in fields else written)


def _line(error: Exception) -> str:
    """The error in one line, without the hints of pydantic."""
    if isinstance(error, ValidationError):
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        return '; '.join(f'{".".join(map(str, each["loc"])) or "it"}: {each["msg"]}' for each in problems[:3])
    return str(error).partition('\n')[0]


# Digests --------------------------------------------------------------------------------------------------------------

_canonical = json.JSONEncoder(sort_keys=True, separators=(',', ':'), check_circular=False).encode
_LARGE = 1 << 53
_MAX_DEPTH = 8


def fingerprint(*inputs: object) -> str:
    """A short digest of inputs. Objects that are not data count by their type: a client, an agent, a function."""
    outlines: Json = [_outline(value, 0) for value in inputs]
    text = codec.dump(outlines)
    if '{' in text:  # independent of the order of dicts and sets
        text = _canonical(_ordered(outlines) if 'set"' in text or '"dict"' in text else outlines)
    return hashlib.blake2b(text.encode('ascii'), digest_size=8).hexdigest()


def _ordered(packed: Json) -> Json:
    if isinstance(packed, list):
        return [_ordered(item) for item in packed]
    if isinstance(packed, dict):
        ordered = {key: _ordered(item) for key, item in packed.items()}
        items = ordered.get('v')
        if ordered.get('$') in ('set', 'frozenset', 'dict') and isinstance(items, list):
            ordered['v'] = sorted(items, key=_canonical)
        return ordered
    return packed


def _outline(value: object, depth: int) -> Json:
    if type(value) is str or (type(value) is int and -_LARGE < value < _LARGE):
        return value  # as `pack` does
    try:
        return codec.pack(value)
    except NotPlain:
        pass
    name = type(value).__qualname__  # without its module, which may be `__main__` in one process only
    return {name: _parts(value, depth + 1) if depth < _MAX_DEPTH else ''}


def _parts(value: object, depth: int) -> Json:
    """The content of a value that is not plain data."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, os.PathLike):
        return _outline(os.fspath(cast('os.PathLike[str]', value)), depth)
    if isinstance(value, BaseModel):
        return _outline(dict(value), depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _outline({field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}, depth)
    if is_mapping(value):
        return sorted(([_outline(key, depth), _outline(item, depth)] for key, item in value.items()), key=_canonical)
    if _is_collection(value):
        outlines = [_outline(item, depth) for item in value]
        return sorted(outlines, key=_canonical) if isinstance(value, Set) else outlines
    if callable(value):
        return str(getattr(value, '__qualname__', ''))
    return _memory(value)


def _is_collection(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, (Set, list, tuple, deque, range))


def _memory(value: object) -> Json:
    """A digest of an array of numbers; empty for other objects."""
    try:
        view = memoryview(cast('bytes', value))
    except (TypeError, ValueError, BufferError, NotImplementedError):
        return ''
    if 'O' in view.format:  # it contains addresses of objects
        return ''
    return [view.format, list(view.shape or ()), hashlib.blake2b(view.tobytes(), digest_size=16).hexdigest()]
