"""Makes one core module of those that are linked."""

from collections.abc import Iterable

from habilis.sandbox.wasm.linking.binary import Unlinkable, encode, encode_signed, section, sized, vector
from habilis.sandbox.wasm.linking.component import CoreItem
from habilis.sandbox.wasm.linking.core_module import FUNCTION, GLOBAL
from habilis.sandbox.wasm.linking.instructions import Code, CodeReference, Op, split
from habilis.sandbox.wasm.linking.links import Links, Symbol, Target

MODULE_PREAMBLE = b'\0asm\1\0\0\0'
OUTSIDE = 'outside'
"""The name of the module that all imports are from."""

I32 = 0x7F


class MergedModule:
    """All of the linked modules that can be reached from what the component uses of them."""

    def __init__(self, links: Links, used: Iterable[Symbol]) -> None:
        self._links = links
        self.exports = {symbol: str(place) for place, symbol in enumerate(used)}
        """Names of what the component uses."""

        self._codes: dict[Symbol, Code] = {}
        self._outside: dict[CoreItem, bytes] = {}
        self._changed: set[Symbol] = set()
        self._reach()
        self.imports = {str(place): item for place, item in enumerate(self._outside)}
        """The functions that it gets, by their names."""

        self._functions: dict[Target, int] = {
            function: place for place, function in enumerate([*self._outside, *sorted(self._codes)])
        }
        self._globals = {symbol: place for place, symbol in enumerate(sorted(self._changed))}
        self._types: dict[bytes, int] = {}

    def _reach(self) -> None:
        """Find all functions that may be called, and all globals that may be changed."""
        todo = [symbol for symbol in self.exports if symbol.kind == FUNCTION]
        for _, functions in self._links.elements:
            todo += functions
        while todo:
            function = todo.pop()
            if function not in self._codes:
                code = self._codes[function] = split(self._links.body(function))
                todo += self._look_at(function.instance, code)

    def _look_at(self, instance: CoreItem, code: Code) -> Iterable[Symbol]:
        """Note what a function refers to; the linked functions that it calls."""
        for reference in {each for each in code if isinstance(each, CodeReference)}:
            match reference:
                case (Op.CALL, place):
                    target = self._links.called(instance, place)
                    if isinstance(target, Symbol):
                        yield target
                    else:
                        self._outside[target] = self._links.type(Symbol(instance, FUNCTION, place))
                case (Op.GLOBAL_SET, place):
                    self._changed.add(self._links.own(instance, GLOBAL, place))
                case _:
                    pass

    def encode(self) -> bytes:
        """The module in the binary format."""
        functions, modules = sorted(self._codes), self._links.modules.values()
        bodies = [sized(self._encode_code(function)) for function in functions]
        kinds = [encode(self._type(self._links.type(function))) for function in functions]
        imports = [self._encode_import(name, self._outside[item]) for name, item in self.imports.items()]
        (table,) = [each for module in modules for each in module.tables]
        (memory,) = [each for module in modules for each in module.memories]
        (data,) = [module.data for module in modules if module.data]
        content = {
            1: vector(self._types),  # those that the lines above have met
            2: vector(imports),
            3: vector(kinds),
            4: vector([table]),
            5: vector([memory]),
            6: vector(bytes([I32, 1]) + self._constant(each) + b'\x0b' for each in self._globals),
            7: vector(sized(name.encode()) + self._encode_export(symbol) for symbol, name in self.exports.items()),
            9: vector(self._encode_elements(*each) for each in self._links.elements),
            10: vector(bodies),
            11: data,
        }
        return MODULE_PREAMBLE + b''.join(section(kind, data) for kind, data in content.items())

    def _encode_import(self, name: str, kind: bytes) -> bytes:
        return sized(OUTSIDE.encode()) + sized(name.encode()) + bytes([FUNCTION]) + encode(self._type(kind))

    def _encode_export(self, symbol: Symbol) -> bytes:
        match symbol.kind:
            case 0:
                place = self._functions[symbol]
            case 1 | 2:  # there is one table, and one memory
                place = 0
            case _:  # a global that is not changed is none any more
                place = self._globals[symbol]
        return bytes([symbol.kind]) + encode(place)

    def _encode_elements(self, offset: int, functions: list[Symbol]) -> bytes:
        return b'\0' + _constant(offset) + b'\x0b' + vector(encode(self._functions[each]) for each in functions)

    def _encode_code(self, function: Symbol) -> bytes:
        known: dict[CodeReference, bytes] = {}
        for each in self._codes[function]:
            if isinstance(each, CodeReference) and each not in known:
                known[each] = self._encode_reference(function.instance, *each)
        return b''.join(known[each] if isinstance(each, CodeReference) else each for each in self._codes[function])

    def _encode_reference(self, instance: CoreItem, operation: int, place: int) -> bytes:
        match operation:
            case Op.CALL:
                return bytes([operation]) + encode(self._functions[self._links.called(instance, place)])
            case Op.GLOBAL_GET | Op.GLOBAL_SET:
                symbol = self._links.own(instance, GLOBAL, place)
                changed = symbol in self._changed
                return bytes([operation]) + encode(self._globals[symbol]) if changed else self._constant(symbol)
            case _:
                kind = self._type(self._links.modules[instance].types[place])
                number = encode(kind) + b'\0' if operation == Op.CALL_INDIRECT else encode_signed(kind)
                return bytes([operation]) + number

    def _type(self, kind: bytes) -> int:
        """The place of a type of functions."""
        return self._types.setdefault(kind, len(self._types))

    def _constant(self, symbol: Symbol) -> bytes:
        """The value that a global begins with, as an instruction."""
        if self._links.variable(symbol).type != I32:
            msg = 'a core module has a global that is not a number of 32 bits'
            raise Unlinkable(msg)
        return _constant(self._links.begin(symbol))


def _constant(value: int) -> bytes:
    """An instruction with a number of 32 bits, which WebAssembly writes with a sign."""
    return bytes([Op.I32_CONST]) + encode_signed((value + (1 << 31)) % (1 << 32) - (1 << 31))
