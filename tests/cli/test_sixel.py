"""Sixels, by decoding them again."""

import re
import struct
import zlib
from collections.abc import Sequence

import pytest

from habilis.cli.sixel import png_size, to_sixels

RED, GREEN, BLUE, WHITE, BLACK = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0)
Pixel = tuple[int, ...]


def png(rows: Sequence[Sequence[Pixel]], *, methods: Sequence[int] = (0,), kind: int = 2, depth: int = 8) -> bytes:
    """A PNG whose rows are filtered by these methods in turn."""
    above, filtered = bytes(len(rows[0]) * len(rows[0][0])), b''
    for number, row in enumerate(rows):
        line = bytes(value for pixel in row for value in pixel)
        method = methods[number % len(methods)]
        filtered += bytes([method]) + _filter(method, line, above, len(row[0]))
        above = line
    header = struct.pack('>IIBBBBB', len(rows[0]), len(rows), depth, kind, 0, 0, 0)
    packed = zlib.compress(filtered)
    parts = [(b'IHDR', header), (b'tEXt', b'a\0b'), (b'IDAT', packed[:5]), (b'IDAT', packed[5:]), (b'IEND', b'')]
    made = b'\x89PNG\r\n\x1a\n'
    for name, data in parts:
        made += struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    return made


def _filter(method: int, line: bytes, above: bytes, size: int) -> bytes:
    made = bytearray()
    for index, value in enumerate(line):
        left, corner = (line[index - size], above[index - size]) if index >= size else (0, 0)
        up = above[index]
        nearest = min((left, up, corner), key=lambda guess: abs(left + up - corner - guess))
        made.append((value - (0, left, up, (left + up) // 2, nearest)[method]) & 255)
    return bytes(made)


def drawn(sixels: str) -> list[list[Pixel]]:
    """The pixels that a terminal would draw."""
    found = re.fullmatch('\x1bPq"1;1;([0-9]+);([0-9]+)((?:#[0-9]+;2;[0-9;]+)*)(.*)\x1b\\\\', sixels)
    assert found is not None
    width, height = int(found[1]), int(found[2])
    colours = {
        int(number): (int(red) * 255 // 100, int(green) * 255 // 100, int(blue) * 255 // 100)
        for number, red, green, blue in re.findall('#([0-9]+);2;([0-9]+);([0-9]+);([0-9]+)', found[3])
    }
    pixels: list[list[Pixel]] = [[()] * width for _ in range(height)]
    for top, band in enumerate(found[4].split('-')):
        for line in band.split('$'):
            number, data = re.fullmatch('#([0-9]+)(.*)', line).groups()  # type: ignore[union-attr]
            plain = re.sub('!([0-9]+)(.)', lambda repeated: repeated[2] * int(repeated[1]), data)
            for x, char in enumerate(plain):
                for bit in range(6):
                    if ord(char) - 63 & 1 << bit:
                        pixels[6 * top + bit][x] = colours[int(number)]
    return pixels


ROWS = [[(RED, GREEN, BLUE, WHITE, BLACK)[x * y % 5] for x in range(21)] for y in range(13)]


@pytest.mark.parametrize('methods', [(0,), (1,), (2,), (3,), (4,), (0, 4, 1, 3, 2)])
def test_every_filter_of_png_is_undone(methods: tuple[int, ...]) -> None:
    data = png(ROWS, methods=methods)
    assert png_size(data) == (21, 13)
    assert drawn(to_sixels(data)) == ROWS


def test_colours_become_the_nearest_of_six_levels() -> None:
    assert drawn(to_sixels(png([[(10, 60, 200)]]))) == [[(0, 51, 204)]]


def test_transparent_pixels_are_white_and_grey_ones_grey() -> None:
    assert drawn(to_sixels(png([[(*RED, 255), (*RED, 0)]], kind=6))) == [[RED, WHITE]]
    assert drawn(to_sixels(png([[(0,), (102,)]], kind=0))) == [[BLACK, (102, 102, 102)]]
    assert drawn(to_sixels(png([[(0, 255), (0, 3)]], kind=4))) == [[BLACK, WHITE]]


def test_a_picture_can_be_drawn_smaller() -> None:
    assert drawn(to_sixels(png(ROWS), every=3)) == [row[::3] for row in ROWS[::3]]


@pytest.mark.parametrize(
    'data',
    [
        b'',
        b'\x89PNG',
        b'\x89PNG\r\n\x1a\n' + bytes(100),
        png(ROWS)[:60],
        png(ROWS, depth=16),
        png(ROWS, kind=3),
        png(ROWS).replace(b'\0\0\0\x15\0\0\0\x0d', b'\0\0\xff\xff\0\0\xff\xff'),
        png(ROWS).replace(b'\0\0\0\x15\0\0\0\x0d', bytes(8)),
    ],
)
def test_what_cannot_be_decoded_is_not_drawn(data: bytes) -> None:
    assert to_sixels(data) == ''
