"""Reads and writes the binary format of WebAssembly: numbers, names, vectors and sections."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from habilis.core.errors import SandboxError

T = TypeVar('T')
HEADER = 8
"""Bytes before the first section."""


class Unlinkable(SandboxError):
    """The component is not as componentize-py builds it."""


@dataclass(frozen=True)
class BinarySection:
    """A section: its kind, and the positions of its content."""

    kind: int
    start: int
    end: int


class Reader:
    """Reads bytes from a position on."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """An unsigned LEB128 number."""
        value, self.at = number(self.data, self.at)
        return value

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def name(self) -> str:
        return self.take(self.number()).decode()

    def vector(self, read: Callable[[], T]) -> list[T]:
        return [read() for _ in range(self.number())]

    def since(self, start: int) -> bytes:
        """The bytes that were read since a position."""
        return self.data[start : self.at]


def number(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number, and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def signed(data: bytes, at: int = 0) -> int:
    """A signed LEB128 number."""
    value, end = number(data, at)
    bits = 7 * (end - at)
    return value - (1 << bits) if value >> (bits - 1) else value


def sections(data: bytes | bytearray, at: int, end: int) -> Iterator[BinarySection]:
    """The sections of a module or component."""
    while at < end:
        kind = data[at]
        size, at = number(data, at + 1)
        yield BinarySection(kind, at, at + size)
        at += size


def encode(value: int) -> bytes:
    """An unsigned LEB128 number."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_signed(value: int) -> bytes:
    """A signed LEB128 number."""
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value & 127)
    return bytes(out)


def sized(data: bytes) -> bytes:
    """Bytes after their number: a name, a body, the content of a section."""
    return encode(len(data)) + data


def vector(items: Iterable[bytes]) -> bytes:
    encoded = list(items)
    return encode(len(encoded)) + b''.join(encoded)


def section(kind: int, content: bytes) -> bytes:
    """A section of a module or component."""
    return bytes([kind]) + sized(content)
