"""A component, as far as linking its core modules needs it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from habilis.sandbox.wasm.linking.binary import (
    HEADER,
    BinarySection,
    Reader,
    Unlinkable,
    encode,
    section,
    sections,
    sized,
    vector,
)
from habilis.sandbox.wasm.linking.core_module import FUNCTION, MEMORY

CORE_MODULE, CORE_INSTANCES, ALIASES, CANONS = 1, 2, 6, 8
"""Kinds of sections."""

INSTANCE = 0x12
"""The kind of an instance of a core module, beside those of its exports."""

OPTIONS = {3: MEMORY, 4: FUNCTION, 5: FUNCTION, 7: FUNCTION}
"""Options of a canonical function that name something, and its kind."""


class CoreItem(NamedTuple):
    """Something in a core index space of the component."""

    kind: int
    place: int


Renumber = Callable[[CoreItem], int]


class Verbatim(NamedTuple):
    """What linking does not change: a whole section, or one alias."""

    kind: int
    content: bytes

    def uses(self) -> list[CoreItem]:
        return []

    def encode(self, _place: Renumber) -> bytes:
        content = vector([self.content]) if self.kind == ALIASES else self.content
        return section(self.kind, content)


class Instantiation(NamedTuple):
    """An instance of a core module, and the instances that it imports from."""

    module: int
    arguments: dict[str, CoreItem]

    def uses(self) -> list[CoreItem]:
        return list(self.arguments.values())

    def encode(self, place: Renumber) -> bytes:
        given = (sized(name.encode()) + b'\x12' + encode(place(item)) for name, item in self.arguments.items())
        return section(CORE_INSTANCES, vector([b'\0' + encode(self.module) + vector(given)]))


class Bundle(NamedTuple):
    """An instance that exports what others have defined."""

    exports: dict[str, CoreItem]

    def uses(self) -> list[CoreItem]:
        return list(self.exports.values())

    def encode(self, place: Renumber) -> bytes:
        given = (sized(name.encode()) + bytes([item.kind]) + encode(place(item)) for name, item in self.exports.items())
        return section(CORE_INSTANCES, vector([b'\1' + vector(given)]))


class CoreExport(NamedTuple):
    """An alias of an export of a core instance."""

    kind: int
    instance: CoreItem
    name: str

    def uses(self) -> list[CoreItem]:
        return [self.instance]

    def encode(self, place: Renumber) -> bytes:
        alias = bytes([0, self.kind, 1]) + encode(place(self.instance)) + sized(self.name.encode())
        return section(ALIASES, vector([alias]))


class Lowered(NamedTuple):
    """A core function made of one of the component, or one that handles a resource."""

    head: bytes
    options: list[tuple[int, CoreItem | None]] | None

    def uses(self) -> list[CoreItem]:
        return [item for _, item in self.options or () if item]

    def encode(self, place: Renumber) -> bytes:
        return section(CANONS, vector([self.head + _options(self.options, place)]))


class Lifted(NamedTuple):
    """A function of the component made of a core function."""

    function: CoreItem
    options: list[tuple[int, CoreItem | None]]
    type: int

    def uses(self) -> list[CoreItem]:
        return [self.function, *(item for _, item in self.options if item)]

    def encode(self, place: Renumber) -> bytes:
        head = b'\0\0' + encode(place(self.function))
        return section(CANONS, vector([head + _options(self.options, place) + encode(self.type)]))


Definition = Verbatim | Instantiation | Bundle | CoreExport | Lowered | Lifted


def _options(options: list[tuple[int, CoreItem | None]] | None, place: Renumber) -> bytes:
    if options is None:
        return b''
    return vector(bytes([option]) + (encode(place(item)) if item else b'') for option, item in options)


@dataclass
class Component:
    """The core modules of a component, and its definitions in their order."""

    modules: list[bytes] = field(default_factory=list[bytes])
    definitions: list[tuple[CoreItem | None, Definition]] = field(
        default_factory=list[tuple[CoreItem | None, Definition]]
    )
    """With what each of them defines in a core index space."""

    items: dict[CoreItem, Definition] = field(default_factory=dict[CoreItem, Definition])
    _counts: Counter[int] = field(default_factory=Counter[int])

    def add(self, kind: int | None, definition: Definition) -> None:
        """Add the next definition."""
        item = None
        if kind is not None:
            item = CoreItem(kind, self._counts[kind])
            self._counts[kind] += 1
            self.items[item] = definition
        self.definitions.append((item, definition))


def parse_component(data: bytes) -> Component:
    """Parse a component. Raises `Unlinkable` for what componentize-py does not use."""
    component = Component()
    for part in sections(data, HEADER, len(data)):
        match part.kind:
            case 0:  # names
                pass
            case 1:
                component.modules.append(data[part.start : part.end])
            case 2 | 6 | 8:
                _add_definitions(component, part, Reader(data, part.start))
            case _:
                component.add(None, Verbatim(part.kind, data[part.start : part.end]))
    return component


def _add_definitions(component: Component, part: BinarySection, reader: Reader) -> None:
    for _ in range(reader.number()):
        match part.kind:
            case 2:
                component.add(INSTANCE, _instance(reader))
            case 6:
                alias = _alias(reader)
                component.add(alias.kind if isinstance(alias, CoreExport) else None, alias)
            case _:
                canon = _canon(reader)
                component.add(FUNCTION if isinstance(canon, Lowered) else None, canon)


def _instance(reader: Reader) -> Instantiation | Bundle:
    module = None if reader.byte() else reader.number()
    items = dict(reader.vector(lambda: (reader.name(), CoreItem(reader.byte(), reader.number()))))
    return Bundle(items) if module is None else Instantiation(module, items)


def _alias(reader: Reader) -> CoreExport | Verbatim:
    start = reader.at
    kind = reader.byte()
    core = reader.byte() if kind == 0 else None
    match reader.byte(), core:
        case 1, int():
            return CoreExport(core, CoreItem(INSTANCE, reader.number()), reader.name())
        case 0, None:
            reader.number()
            reader.name()
        case 2, _:
            reader.number()
            reader.number()
        case _:
            msg = 'the component has an alias of an unknown kind'
            raise Unlinkable(msg)
    return Verbatim(ALIASES, reader.since(start))


def _canon(reader: Reader) -> Lowered | Lifted:
    start = reader.at
    match operation := reader.byte():
        case 0:
            reader.byte()
            function = CoreItem(FUNCTION, reader.number())
            return Lifted(function, reader.vector(lambda: _option(reader)), reader.number())
        case 1:
            reader.byte()
            reader.number()
            return Lowered(reader.since(start), reader.vector(lambda: _option(reader)))
        case 2 | 3 | 4:  # of resources
            reader.number()
            return Lowered(reader.since(start), None)
        case _:
            msg = f'the component has a canonical function of kind {operation}'
            raise Unlinkable(msg)


def _option(reader: Reader) -> tuple[int, CoreItem | None]:
    option = reader.byte()
    return option, CoreItem(OPTIONS[option], reader.number()) if option in OPTIONS else None
