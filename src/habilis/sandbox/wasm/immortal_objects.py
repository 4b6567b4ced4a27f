"""Makes the objects of the built interpreter immortal.

Every use of an object writes its reference count, so a sandbox soon has its own copy of each page it only meant to
read. Python has immortal objects, whose count is never written. Here everything that is alive when the component is
built becomes one: a first cell copies a sixth fewer pages, and takes a third less time. Nothing changes for the code
inside, but that what was there from the start is never freed.

The component is started once, asked where its objects are, and the counts are changed in its memory image.
"""

import bisect
import json
import struct
from dataclasses import dataclass
from typing import cast

from habilis.core.codec import parse, unpack
from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.contract import GuestSpec
from habilis.sandbox.wasm.engine import Engine, SilentHost
from habilis.sandbox.workers import start_deep_thread

IMMORTAL = 5 << 28
"""The count CPython itself gives immortal objects where pointers have 32 bits."""

MOST = 50_000
"""No object here is referred to more often; a larger number means that there is no object."""

WHERE = """
import array, gc, types
gc.unfreeze()
todo, seen, where = gc.get_objects(), set(), array.array('I')
while todo:
    thing = todo.pop()
    if id(thing) not in seen:
        seen.add(id(thing))
        where.extend((id(thing), id(type(thing))))
        todo.extend(gc.get_referents(thing))
        if type(thing) is types.CodeType:
            todo.extend((thing.co_consts, thing.co_names, thing.co_varnames, thing.co_linetable))
where.tobytes(), id(display.__self__.reserve)
"""
"""A cell that tells the address and the type of every object it can reach, and the one that must stay mortal."""


@dataclass(frozen=True)
class Segment:
    """A piece of the memory image: where it goes in memory, and where it is in the file."""

    address: int
    size: int
    position: int


def immortalize(data: bytes) -> bytes:
    """The component with immortal objects."""
    found = _ask(data)
    changed, patched = _patch(bytearray(data), *found)
    if patched < 10_000:
        msg = f'only {patched} objects were found in the image of the component; its format is not the expected one'
        raise SandboxError(msg)
    return bytes(changed)


def _ask(data: bytes) -> tuple[list[tuple[int, int]], int]:
    """Run the component once; the objects in it as pairs of address and type, and the one to leave alone."""
    answers: list[str] = []

    def work() -> None:
        guest = Engine.compile(data).start(GuestSpec(limits=Limits(memory_mb=1024)))
        answers.append(guest.enter(json.dumps({'op': 'run', 'code': WHERE}), SilentHost()))
        guest.close()

    start_deep_thread(work, 'habilis-immortal').join()
    answer = cast('dict[str, object]', unpack(parse(answers[0]))) if answers else {}
    if 'value' not in answer:
        msg = f'the component that was just built does not work: {answer.get("error")}'
        raise SandboxError(msg)
    packed, mortal = cast('tuple[bytes, int]', answer['value'])
    numbers = struct.unpack(f'<{len(packed) // 4}I', packed)
    return list(zip(numbers[::2], numbers[1::2], strict=True)), mortal


def _patch(data: bytearray, objects: list[tuple[int, int]], mortal: int) -> tuple[bytearray, int]:
    """Change the counts. What the cell itself made is not in the image: there, the type or the count does not fit."""
    segments = sorted(data_segments(data), key=lambda segment: segment.address)
    starts = [segment.address for segment in segments]
    patched = 0
    for address, kind in objects:
        segment = segments[bisect.bisect_right(starts, address) - 1]
        offset = address - segment.address
        if address == mortal or not 0 <= offset <= segment.size - 8:
            continue
        count, found = struct.unpack_from('<iI', data, segment.position + offset)
        if found == kind and 1 <= count <= MOST:
            struct.pack_into('<i', data, segment.position + offset, IMMORTAL)
            patched += 1
    return data, patched


def data_segments(component: bytes | bytearray) -> list[Segment]:
    """The data segments of the first core module of a component, which holds its memory."""
    for kind, start, end in _sections(component, 8, len(component)):
        if kind == 1:  # a core module
            for part, first, _ in _sections(component, start + 8, end):
                if part == 11:  # its data
                    return _segments(component, first)
    msg = 'the component has no memory image'
    raise SandboxError(msg)


def _segments(data: bytes | bytearray, at: int) -> list[Segment]:
    count, at = _number(data, at)
    segments: list[Segment] = []
    for _ in range(count):
        if data[at] != 0 or data[at + 1] != 0x41:  # active, at a constant address
            msg = 'the memory image of the component has a segment of an unknown kind'
            raise SandboxError(msg)
        address, at = _number(data, at + 2)
        size, at = _number(data, at + 1)  # after the end of the constant
        segments.append(Segment(address, size, at))
        at += size
    return segments


def _sections(data: bytes | bytearray, at: int, end: int) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    while at < end:
        kind = data[at]
        size, at = _number(data, at + 1)
        found.append((kind, at, at + size))
        at += size
    return found


def _number(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and what follows it. Addresses are below 2 GB, so their sign does not matter."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
