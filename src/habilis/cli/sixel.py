"""PNG pictures as sixels, with the standard library alone: 8 bits per channel, not interlaced, in 216 colours."""

import re
import struct
import zlib

SIGNATURE = b'\x89PNG\r\n\x1a\n'
MAX_PIXELS = 1 << 22
"""Pixels of a picture that is drawn: decoding takes about a second per million."""

_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Bytes per pixel of the colour types: grey, RGB, and both with alpha."""

_LEVELS = (36, 6, 1)
_WHITE = 215
_STEPS = tuple(bytes((value + 25) // 51 * weight for value in range(256)) for weight in _LEVELS)
"""For red, green and blue: the part of the colour's number that comes from a channel, in six levels."""

_SIXELS = bytes((value + 63) & 255 for value in range(256))
_REPEATED = re.compile(rb'(.)\1{3,254}', re.DOTALL)


def png_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None if this is not the start of a PNG."""
    if not data.startswith(SIGNATURE) or data[12:16] != b'IHDR' or len(data) < 33:
        return None
    width, height = struct.unpack('>II', data[16:24])
    return width, height


def to_sixels(data: bytes, *, every: int = 1) -> str:
    """The picture as a control sequence, with one of `every` so many pixels; empty if it cannot be decoded."""
    rows = _colour_rows(data, every)
    if not rows:
        return ''
    used = sorted({colour for row in rows for colour in set(row)})
    palette = ''.join(f'#{colour};2;{";".join(_percents(colour))}' for colour in used)
    bands = '-'.join(_band(rows[top : top + 6]) for top in range(0, len(rows), 6))
    return f'\033Pq"1;1;{len(rows[0])};{len(rows)}{palette}{bands}\033\\'


def _percents(colour: int) -> list[str]:
    return [str(colour // weight % 6 * 20) for weight in _LEVELS]


def _band(rows: list[bytes]) -> str:
    """Six rows: for each of their colours, a character per column whose bits say which rows have it."""
    width, lines = len(rows[0]), list[str]()
    for colour in sorted(set(b''.join(rows))):
        bits = 0
        for number, row in enumerate(rows):
            has_colour = bytes(colour) + bytes([1 << number]) + bytes(255 - colour)
            bits |= int.from_bytes(row.translate(has_colour))
        sixels = bits.to_bytes(width).translate(_SIXELS)
        packed = _REPEATED.sub(lambda found: b'!%d%b' % (len(found[0]), found[1]), sixels)
        lines.append(f'#{colour}{packed.decode("ascii")}')
    return '$'.join(lines)


def _colour_rows(data: bytes, every: int) -> list[bytes]:
    """Rows with the number of a colour for each pixel."""
    size = png_size(data)
    if size is None or not 0 < size[0] * size[1] <= MAX_PIXELS:
        return []
    width, height = size
    depth, kind, _, _, interlaced = data[24:29]
    channels = _CHANNELS.get(kind)
    if channels is None or depth != 8 or interlaced:
        return []
    stride = width * channels + 1
    try:
        plain = zlib.decompressobj().decompress(_image_data(data), stride * height)
    except zlib.error:
        return []
    if len(plain) < stride * height:
        return []
    rows, above = list[bytes](), bytes(stride - 1)
    for number in range(height):
        line = plain[number * stride : (number + 1) * stride]
        above = _unfiltered(line[0], bytearray(line[1:]), above, channels)
        if number % every == 0:
            rows.append(_colours(above, channels)[::every])
    return rows


def _image_data(data: bytes) -> bytes:
    found, place = list[bytes](), len(SIGNATURE)
    while place + 8 <= len(data):
        (length,) = struct.unpack('>I', data[place : place + 4])
        if data[place + 4 : place + 8] == b'IDAT':
            found.append(data[place + 8 : place + 8 + length])
        place += 12 + length
    return b''.join(found)


def _unfiltered(method: int, line: bytearray, above: bytes, channels: int) -> bytes:
    """The bytes of a row, from their differences to the pixels on the left and above."""
    if method == 2:
        return bytes((value + up) & 255 for value, up in zip(line, above, strict=True))
    if method == 0:
        return bytes(line)
    for index, value in enumerate(line):
        left, corner = (line[index - channels], above[index - channels]) if index >= channels else (0, 0)
        up = above[index]
        if method == 1:
            guess = left
        elif method == 3:
            guess = (left + up) // 2
        else:
            guess = _nearest(left, up, corner)
        line[index] = (value + guess) & 255
    return bytes(line)


def _nearest(left: int, up: int, corner: int) -> int:
    """Which of the three is nearest to left + up - corner."""
    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner


def _colours(row: bytes, channels: int) -> bytes:
    is_grey = channels < 3
    planes = (row[0 if is_grey else number :: channels].translate(_STEPS[number]) for number in range(3))
    colours = bytes(map(sum, zip(*planes, strict=True)))
    if channels in (1, 3):
        return colours
    alphas = row[channels - 1 :: channels]
    if min(alphas) >= 128:
        return colours
    return bytes(colour if alpha >= 128 else _WHITE for colour, alpha in zip(colours, alphas, strict=True))
