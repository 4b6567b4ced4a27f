"""JSON documents that users keep: an object that names its kind and version beside the fields of a dataclass."""

import json
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from habilis.core import codec
from habilis.core.codec import CodecError, Json, NotPlain
from habilis.core.dataclass_codec import DataclassCodec, pack_or_repr
from habilis.core.errors import DocumentError

T = TypeVar('T')
KIND, VERSION = 'habilis', 'version'


class DocumentFormat(Generic[T]):
    """Writes and reads documents of one kind. Documents of older versions are read, fields it does not know ignored."""

    def __init__(self, kind: str, version: int, fields: DataclassCodec[T], *, lists: Sequence[str] = ()) -> None:
        """Choose the names in the document.

        Args:
            kind: what the document is, in a word.
            version: the current version.
            fields: encodes the dataclass.
            lists: fields with tuples that are written as lists, as other programs expect them.
        """
        self._kind, self._version, self._codec, self._lists = kind, version, fields, lists

    def fields(self, value: T) -> dict[str, Json]:
        """The fields that differ from their defaults, as JSON types. Raises `DocumentError`."""
        fields = self._codec.to_dict(value)
        fields.update({name: list(fields[name]) for name in self._lists if name in fields})
        try:
            return {name: pack_or_repr(item) for name, item in fields.items()}
        except (NotPlain, ValueError) as error:
            msg = f'this {self._kind} cannot be written as JSON: {error}'
            raise DocumentError(msg) from None

    def write(self, fields: Mapping[str, Json], indent: int | None) -> str:
        """The text of a document, in ASCII, so that any file and database can hold it."""
        document: dict[str, Json] = {KIND: self._kind, VERSION: self._version, **fields}
        return codec.dump(document) if indent is None else json.dumps(document, indent=indent)

    def read(self, text: str | bytes) -> dict[str, Json]:
        """The fields of a document. Raises `DocumentError`."""
        try:
            document = codec.parse((text if isinstance(text, str) else text.decode()).strip())
        except (CodecError, UnicodeDecodeError) as error:
            msg = f'cannot read this {self._kind}: {error}'
            raise DocumentError(msg) from None
        if not isinstance(document, dict) or document.get(KIND) != self._kind:
            msg = f'this JSON is no {self._kind} that Habilis wrote: it has no "{KIND}": "{self._kind}"'
            raise DocumentError(msg)
        self._check_version(document.get(VERSION))
        return {name: item for name, item in document.items() if name not in (KIND, VERSION)}

    def _check_version(self, version: Json) -> None:
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            msg = f'this {self._kind} is damaged: its "{VERSION}" is {version!r}'
            raise DocumentError(msg)
        if version > self._version:
            msg = (
                f'this {self._kind} has version {version}, and this Habilis reads versions up to {self._version}: '
                'update Habilis'
            )
            raise DocumentError(msg)

    def decode(self, fields: dict[str, Json]) -> T:
        """The value with these fields. Raises `DocumentError`."""
        try:
            return self._codec.from_dict(codec.unpack(fields))
        except ValueError as error:
            msg = f'this {self._kind} is damaged: {error}'
            raise DocumentError(msg) from None
