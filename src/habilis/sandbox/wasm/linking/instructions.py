"""Finds what the code of a function refers to."""

import re
from typing import NamedTuple

from habilis.sandbox.wasm.linking.binary import Reader, Unlinkable


class Op:
    """The instructions that linking looks at."""

    BLOCK, LOOP, IF, END, BR_TABLE, CALL, CALL_INDIRECT = 0x02, 0x03, 0x04, 0x0B, 0x0E, 0x10, 0x11
    LOCAL_GET, GLOBAL_GET, GLOBAL_SET = 0x20, 0x23, 0x24
    I32_CONST, I64_CONST, F32_CONST, F64_CONST, I32_ADD = 0x41, 0x42, 0x43, 0x44, 0x6A


LEB = rb'[\x80-\xff]*+[\x00-\x7f]'
KEPT = re.compile(
    rb'(?:[\x00\x01\x05\x0b\x0f\x1a\x1b\x45-\xc4\xd1]'  # without operands
    rb'|[\x0c\x0d\x20-\x22\x41\x42]' + LEB + rb'|[\x02-\x04][\x40\x6f\x70\x7b-\x7f]'  # blocks with a simple type
    rb'|[\x28-\x3e][\x00-\x3f]' + LEB + rb'|[\x3f\x40]\x00'  # memory
    rb'|\x43.{4}|\x44.{8}|\xfc(?:[\x00-\x07]|\x0a\x00\x00|\x0b\x00))*+',
    re.DOTALL,
)
"""Instructions that refer to nothing outside of their function, but the memory."""


class CodeReference(NamedTuple):
    """An instruction that refers to something by its index."""

    operation: int
    place: int


Code = list[bytes | CodeReference]
"""The body of a function: bytes that stay, and references between them."""


def split(body: bytes) -> Code:
    """Parse the body of a function. Raises `Unlinkable` for an unknown instruction."""
    reader = Reader(body)
    for _ in range(reader.number()):  # local variables
        reader.number()
        reader.byte()
    code: Code = []
    kept_from = 0
    while (at := _after_kept(body, reader.at)) < len(body):
        reader.at = at + 1
        match body[at]:
            case Op.BR_TABLE:
                reader.vector(reader.number)
                reader.number()
            case Op.BLOCK | Op.LOOP | Op.IF | Op.CALL | Op.CALL_INDIRECT | Op.GLOBAL_GET | Op.GLOBAL_SET:
                code += [body[kept_from:at], CodeReference(body[at], reader.number())]
                if body[at] == Op.CALL_INDIRECT and reader.number() != 0:
                    msg = 'a function uses a second table'
                    raise Unlinkable(msg)
                kept_from = reader.at
            case _:
                msg = f'a function has the instruction {body[at : at + 2].hex()}'
                raise Unlinkable(msg)
    code.append(body[kept_from:])
    return code


def _after_kept(body: bytes, at: int) -> int:
    found = KEPT.match(body, at)
    return found.end() if found else at
