"""A small PNG for tests of pictures."""

import struct
import zlib


def png(width: int = 21, height: int = 13) -> bytes:
    """A PNG that is black."""
    header = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    parts = [(b'IHDR', header), (b'IDAT', zlib.compress(bytes(height * (1 + 3 * width)))), (b'IEND', b'')]
    made = b'\x89PNG\r\n\x1a\n'
    for name, data in parts:
        made += struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    return made
