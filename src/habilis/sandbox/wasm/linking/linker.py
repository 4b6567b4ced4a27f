"""Links the core modules of a component into one.

componentize-py makes a component of twelve modules, eight of them shared libraries (CPython, the C library, …), which
are connected when an instance is created: wasmtime fills the table that they share with 5,700 functions, and resolves
2,200 imports, through which the libraries reach each other, their data and even their own addresses. But all that is
known when the component is built. In one module the table is filled as it is used, calls are direct, and addresses are
constants.
"""

from collections import Counter

from habilis.sandbox.wasm.linking.binary import Unlinkable, section
from habilis.sandbox.wasm.linking.component import (
    CORE_MODULE,
    INSTANCE,
    Bundle,
    CoreExport,
    CoreItem,
    Definition,
    Instantiation,
    Lifted,
    parse_component,
)
from habilis.sandbox.wasm.linking.links import Links, Symbol, Target
from habilis.sandbox.wasm.linking.merging import OUTSIDE, MergedModule

COMPONENT_PREAMBLE = b'\0asm\r\0\1\0'


def link(data: bytes) -> bytes:
    """The same component with one core module, and the two that give it the functions which need its memory."""
    try:
        return _Linker(data).link()
    except (LookupError, ValueError) as error:
        msg = f'something is missing, or is there twice: {type(error).__name__} {error}'
        raise Unlinkable(msg) from error


class _Linker:
    def __init__(self, data: bytes) -> None:
        self._component = parse_component(data)
        self._links = Links(self._component)
        needed = self._find_needed()
        self._merged = MergedModule(self._links, [each for each in needed if isinstance(each, Symbol)])
        self._needed = {*needed, *self._merged.imports.values()}
        self._modules = [self._merged.encode()]
        self._out: list[bytes] = []
        self._places: dict[Target, int] = {}
        self._counts: Counter[int] = Counter()

    def _find_needed(self) -> list[Target]:
        """What the component itself uses, and the instances that are not linked."""
        todo = [
            used
            for item, definition in self._component.definitions
            if isinstance(definition, Lifted | Instantiation) and item not in self._links.modules
            for used in ([item] if item else definition.uses())
        ]
        needed: dict[Target, None] = {}
        while todo:
            target = self._links.follow(todo.pop())
            if target not in needed:
                needed[target] = None
                if isinstance(target, CoreItem):
                    todo += self._component.items[target].uses()
        return list(needed)

    def link(self) -> bytes:
        """The definitions that are needed, in their order."""
        for item, definition in self._component.definitions:
            if item is None:
                self._add(definition)
            elif item in self._needed:
                self._places[item] = self._add(self._with_module(definition), item.kind)
        modules = (section(CORE_MODULE, each) for each in self._modules)
        return b''.join((COMPONENT_PREAMBLE, *modules, *self._out))

    def _with_module(self, definition: Definition) -> Definition:
        """Add the module of an instance that is not linked."""
        if not isinstance(definition, Instantiation):
            return definition
        self._modules.append(self._component.modules[definition.module])
        return definition._replace(module=len(self._modules) - 1)

    def _add(self, definition: Definition, kind: int = -1) -> int:
        """Add a definition with new indexes, and return its own."""
        return self._append(definition.encode(self._place), kind)

    def _append(self, encoded: bytes, kind: int) -> int:
        self._out.append(encoded)
        self._counts[kind] += 1
        return self._counts[kind] - 1

    def _place(self, item: CoreItem) -> int:
        """The new index of something. The linked module is instantiated when something of it is first used."""
        target = self._links.follow(item)
        if isinstance(target, Symbol) and target not in self._places:
            self._add_merged()
        return self._places[target]

    def _add_merged(self) -> None:
        outside = CoreItem(INSTANCE, self._add(Bundle(self._merged.imports), INSTANCE))
        instantiation = Instantiation(0, {OUTSIDE: outside}).encode(_same)
        merged = CoreItem(INSTANCE, self._append(instantiation, INSTANCE))
        for symbol, name in self._merged.exports.items():
            self._places[symbol] = self._append(CoreExport(symbol.kind, merged, name).encode(_same), symbol.kind)


def _same(item: CoreItem) -> int:
    """The index of something that has its new one."""
    return item.place
