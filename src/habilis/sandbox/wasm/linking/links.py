"""Follows the imports of core modules to what they mean."""

import re
from typing import NamedTuple

from habilis.sandbox.wasm.linking.binary import Reader, Unlinkable, signed
from habilis.sandbox.wasm.linking.component import Bundle, Component, CoreExport, CoreItem, Instantiation
from habilis.sandbox.wasm.linking.core_module import FUNCTION, GLOBAL, TABLE, CoreModule, Global, parse_module
from habilis.sandbox.wasm.linking.instructions import Op

TRAMPOLINE = re.compile(rb'\x00((?:\x20[\x00-\x7f])*)\x41([\x80-\xff]*[\x00-\x7f])\x11[\x80-\xff]*[\x00-\x7f]\x00\x0b')
"""A function that passes its arguments on to the one at a place of the table."""

LATE_IMPORTS = '$imports'
"""The table of the two modules that are not linked: they give the others functions that need their memory."""


class Symbol(NamedTuple):
    """Something that a linked module defines: its instance, its kind and its place in the module."""

    instance: CoreItem
    kind: int
    place: int


Target = Symbol | CoreItem
"""What an import means: something of a linked module, or something else in the component."""


class Links:
    """The modules of a component that are linked, by their instances."""

    def __init__(self, component: Component) -> None:
        self._component = component
        self._arguments: dict[CoreItem, dict[str, CoreItem]] = {}
        self.modules = self._find_modules()
        self.elements = [
            (self._value(instance, each.offset), [self.own(instance, FUNCTION, place) for place in each.functions])
            for instance, module in self.modules.items()
            for each in module.elements
        ]
        """What is in the table: functions from an offset on."""

        self._table = {
            place: function for offset, functions in self.elements for place, function in enumerate(functions, offset)
        }

    def _find_modules(self) -> dict[CoreItem, CoreModule]:
        parsed = [parse_module(data) for data in self._component.modules]
        found: dict[CoreItem, CoreModule] = {}
        for instance, definition in self._component.items.items():
            if isinstance(definition, Instantiation):
                module = parsed[definition.module]
                if LATE_IMPORTS not in {*module.exports, *(each.name for each in module.imports[TABLE])}:
                    found[instance] = module
                    self._arguments[instance] = definition.arguments
        if len(found) > len({id(module) for module in found.values()}):
            msg = 'a core module has several instances'
            raise Unlinkable(msg)
        return found

    def follow(self, item: CoreItem) -> Target:
        """What an item of the component is."""
        definition = self._component.items[item]
        if isinstance(definition, CoreExport) and definition.instance in self.modules:
            return self._exported(definition.instance, definition.name)
        return item

    def _exported(self, instance: CoreItem, name: str) -> Target:
        return self.target(instance, *self.modules[instance].exports[name])

    def target(self, instance: CoreItem, kind: int, place: int) -> Target:
        """What something is that a module knows by a place."""
        imports = self.modules[instance].imports[kind]
        if place >= len(imports):
            return Symbol(instance, kind, place)
        wanted = imports[place]
        source = self._arguments[instance][wanted.module]
        if source in self.modules:
            return self._exported(source, wanted.name)
        bundle = self._component.items[source]
        if not isinstance(bundle, Bundle):
            msg = f'a core module imports from {wanted.module!r}, which is not linked'
            raise Unlinkable(msg)
        return self.follow(bundle.exports[wanted.name])

    def own(self, instance: CoreItem, kind: int, place: int) -> Symbol:
        """The same for what must be of a linked module."""
        target = self.target(instance, kind, place)
        if not isinstance(target, Symbol):
            msg = 'a core module uses a global, or puts a function into the table, that is not linked'
            raise Unlinkable(msg)
        return target

    def called(self, instance: CoreItem, place: int) -> Target:
        """The function that a call means."""
        target = self.target(instance, FUNCTION, place)
        if not isinstance(target, Symbol) or not (found := TRAMPOLINE.fullmatch(self.body(target))):
            return target
        behind, kind = self._table.get(signed(found[2])), self.type(target)
        arguments = b''.join(bytes([Op.LOCAL_GET, parameter]) for parameter in range(kind[1]))
        return behind if behind and found[1] == arguments and self.type(behind) == kind else target

    def body(self, function: Symbol) -> bytes:
        """The code of a function."""
        module = self.modules[function.instance]
        return module.bodies[function.place - len(module.imports[FUNCTION])]

    def type(self, function: Symbol) -> bytes:
        """The type of a function."""
        module = self.modules[function.instance]
        imports = module.imports[FUNCTION]
        if function.place < len(imports):
            return module.types[Reader(imports[function.place].type).number()]
        return module.types[module.functions[function.place - len(imports)]]

    def variable(self, symbol: Symbol) -> Global:
        """A global."""
        module = self.modules[symbol.instance]
        return module.globals[symbol.place - len(module.imports[GLOBAL])]

    def begin(self, symbol: Symbol) -> int:
        """The value that a global begins with."""
        return self._value(symbol.instance, self.variable(symbol).begin)

    def _value(self, instance: CoreItem, expression: bytes) -> int:
        """The value of a constant expression of 32 bits."""
        reader, stack = Reader(expression), [0]
        while reader.at < len(expression):
            match reader.byte():
                case Op.I32_CONST:
                    start = reader.at
                    reader.number()
                    stack.append(signed(reader.since(start)))
                case Op.GLOBAL_GET:
                    stack.append(self.begin(self.own(instance, GLOBAL, reader.number())))
                case Op.I32_ADD:
                    stack.append(stack.pop() + stack.pop())
                case _:
                    msg = 'an address is not a number of 32 bits'
                    raise Unlinkable(msg)
        return stack[-1]
