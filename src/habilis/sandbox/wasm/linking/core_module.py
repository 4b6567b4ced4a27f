"""A core module, as far as linking needs it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from habilis.sandbox.wasm.linking.binary import HEADER, Reader, Unlinkable, sections
from habilis.sandbox.wasm.linking.instructions import Op

KINDS = FUNCTION, TABLE, MEMORY, GLOBAL = range(4)


class Import(NamedTuple):
    """Something that a module gets from another one."""

    module: str
    name: str
    kind: int
    type: bytes
    """The index of the type of a function; else the type itself."""


class Item(NamedTuple):
    """Something in an index space of a module."""

    kind: int
    place: int


@dataclass(frozen=True)
class Global:
    """A global: its type, and the expression that it begins with."""

    type: int
    begin: bytes


@dataclass(frozen=True)
class Elements:
    """Functions to put into the table, from an offset on."""

    offset: bytes
    functions: list[int]


@dataclass
class CoreModule:
    """The sections of a core module, parsed. Indexes are those of the module."""

    types: list[bytes] = field(default_factory=list[bytes])
    imports: dict[int, list[Import]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    """By kind. They come first in the index space of their kind."""

    functions: list[int] = field(default_factory=list[int])
    tables: list[bytes] = field(default_factory=list[bytes])
    memories: list[bytes] = field(default_factory=list[bytes])
    globals: list[Global] = field(default_factory=list[Global])
    exports: dict[str, Item] = field(default_factory=dict[str, Item])
    elements: list[Elements] = field(default_factory=list[Elements])
    bodies: list[bytes] = field(default_factory=list[bytes])
    data: bytes | None = None


def parse_module(data: bytes) -> CoreModule:
    """Parse a core module. Raises `Unlinkable` for what componentize-py does not use."""
    module, reader = CoreModule(), Reader(data)
    for part in sections(data, HEADER, len(data)):
        reader.at = part.start
        match part.kind:
            case 0 | 12:  # names, and the number of data segments: not needed
                pass
            case 1:
                module.types = reader.vector(lambda: _function_type(reader))
            case 2:
                for each in reader.vector(lambda: _import(reader)):
                    module.imports[each.kind].append(each)
            case 3:
                module.functions = reader.vector(reader.number)
            case 4:
                module.tables = reader.vector(lambda: _table_type(reader))
            case 5:
                module.memories = reader.vector(lambda: _limits(reader))
            case 6:
                module.globals = reader.vector(lambda: _global(reader))
            case 7:
                module.exports = dict(reader.vector(lambda: (reader.name(), Item(reader.byte(), reader.number()))))
            case 9:
                module.elements = reader.vector(lambda: _elements(reader))
            case 10:
                module.bodies = reader.vector(lambda: reader.take(reader.number()))
            case 11:
                module.data = data[part.start : part.end]
            case _:
                msg = f'a core module has a section of kind {part.kind}'
                raise Unlinkable(msg)
    return module


def _function_type(reader: Reader) -> bytes:
    start = reader.at
    if reader.byte() != 0x60:
        msg = 'a core module has a type that is not of a function'
        raise Unlinkable(msg)
    for _ in range(2):
        reader.take(reader.number())
    return reader.since(start)


def _import(reader: Reader) -> Import:
    module, name, kind = reader.name(), reader.name(), reader.byte()
    start = reader.at
    match kind:
        case 0:
            reader.number()
        case 1:
            _table_type(reader)
        case 2:
            _limits(reader)
        case 3:
            reader.take(2)
        case _:
            msg = f'a core module imports something of kind {kind}'
            raise Unlinkable(msg)
    return Import(module, name, kind, reader.since(start))


def _table_type(reader: Reader) -> bytes:
    start = reader.at
    reader.byte()
    _limits(reader)
    return reader.since(start)


def _limits(reader: Reader) -> bytes:
    start = reader.at
    flags = reader.byte()
    reader.number()
    if flags & 1:
        reader.number()
    return reader.since(start)


def _global(reader: Reader) -> Global:
    kind, _mutable = reader.byte(), reader.byte()
    return Global(kind, _expression(reader))


def _expression(reader: Reader) -> bytes:
    """A constant expression, without its end."""
    start = reader.at
    while (code := reader.byte()) != Op.END:
        match code:
            case Op.I32_CONST | Op.I64_CONST | Op.GLOBAL_GET:
                reader.number()
            case Op.F32_CONST:
                reader.take(4)
            case Op.F64_CONST:
                reader.take(8)
            case Op.I32_ADD:
                pass
            case _:
                msg = f'a constant expression has the instruction {code:#x}'
                raise Unlinkable(msg)
    return reader.data[start : reader.at - 1]


def _elements(reader: Reader) -> Elements:
    if (flags := reader.number()) not in (0, 2):
        msg = f'a core module has elements of kind {flags}'
        raise Unlinkable(msg)
    table = reader.number() if flags else 0
    offset = _expression(reader)
    if table != 0 or (flags and reader.byte() != 0):
        msg = 'a core module has elements for a second table'
        raise Unlinkable(msg)
    return Elements(offset, reader.vector(reader.number))
