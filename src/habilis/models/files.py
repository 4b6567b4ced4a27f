"""`Image` and `File`: what a task brings along beside its words."""

import hashlib
import mimetypes
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, cast

from habilis.core.regular_files import read_regular

MAX_FILE_BYTES = 100_000_000
MAX_IMAGE_BYTES = 20_000_000
"""No provider takes larger ones."""

_SIGNATURES = ((b'\x89PNG\r\n\x1a\n', 'image/png'), (b'\xff\xd8\xff', 'image/jpeg'), (b'GIF8', 'image/gif'))


@dataclass(frozen=True, init=False, repr=False)
class File:
    """A file for the code of an agent: `run(['Sum the amounts.', File('sales.csv')])`."""

    name: str
    media_type: str
    digest: str
    """The sha256 of the data."""

    data: bytes = field(default=b'', compare=False)
    """The content. Empty in the record of a run, which has the digest."""

    def __init__(
        self, source: str | os.PathLike[str] | bytes, *, name: str | None = None, media_type: str | None = None
    ) -> None:
        """Read the file at once.

        Args:
            source: path of a file, or its content as bytes.
            name: name of the file inside; that of the path if absent.
            media_type: such as `text/csv`; by the name, or the content of an image, if absent.
        """
        kind = type(self).__name__
        if isinstance(source, str) and source.startswith(('http://', 'https://')):
            msg = f'{kind} takes a path or bytes, not a URL: download {source} first'
            raise ValueError(msg)
        if not isinstance(cast('object', source), str | os.PathLike | bytes):
            msg = f'{kind} takes a path or bytes, not {type(source).__name__}'
            raise TypeError(msg)
        if isinstance(source, bytes):
            data, name = source, name or kind.lower()
        else:
            path = Path(source)
            name = name or path.name
            _check_size(kind, name, path.stat().st_size, self._max_bytes())
            data = read_regular(path, limit=self._max_bytes())
        _check_size(kind, name, len(data), self._max_bytes())
        self._set(
            name=name,
            media_type=media_type or self._media_type(name, data),
            digest=hashlib.sha256(data).hexdigest(),
            data=data,
        )

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.name!r}, {len(self.data):,} bytes)'

    def with_data(self, data: bytes) -> Self:
        """The same with its data."""
        return self._copy(data=data)

    def without_data(self) -> Self:
        """The same without its data, for a record that keeps it elsewhere."""
        return self._copy(data=b'')

    @classmethod
    def recorded(cls, *, name: str, media_type: str, digest: str, data: bytes) -> Self:
        """A file from the record of a run."""
        made = cls.__new__(cls)
        made._set(name=name, media_type=media_type, digest=digest, data=data)
        return made

    def _copy(self, *, data: bytes) -> Self:
        return self.recorded(name=self.name, media_type=self.media_type, digest=self.digest, data=data)

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def _max_bytes() -> int:
        return MAX_FILE_BYTES

    @staticmethod
    def _media_type(name: str, data: bytes) -> str:
        return _image_type(data) or mimetypes.guess_type(name)[0] or 'application/octet-stream'


@dataclass(frozen=True, init=False, repr=False)
class Image(File):
    """An image that the model is shown, and its code can open: `run(['What is in this?', Image('a.png')])`."""

    @staticmethod
    def _max_bytes() -> int:
        return MAX_IMAGE_BYTES

    @staticmethod
    def _media_type(name: str, data: bytes) -> str:
        kind = _image_type(data)
        if not kind:
            msg = f'{name} is not a PNG, JPEG, GIF or WebP image: convert it, or pass File(…) for code to read'
            raise ValueError(msg)
        return kind


def _image_type(data: bytes) -> str:
    if data[:4] == b'RIFF' and data[8:12] == b'WEBP':
        return 'image/webp'
    return next((kind for start, kind in _SIGNATURES if data.startswith(start)), '')


def _check_size(kind: str, name: str, size: int, limit: int) -> None:
    if size > limit:
        msg = f'{name} has {size:,} bytes, more than the {limit:,} of {kind}(…): make it smaller, or use a workspace'
        raise ValueError(msg)
