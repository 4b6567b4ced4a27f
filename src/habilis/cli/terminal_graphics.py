"""Pictures inside a terminal: which protocol it knows, and a PNG in that protocol."""

import base64
import contextlib
import math
import os
import re
import select
import struct
import time
from dataclasses import dataclass
from typing import Literal, TextIO

from habilis.cli.sixel import MAX_PIXELS, png_size, to_sixels

Protocol = Literal['kitty', 'iterm2', 'sixel']

MAX_BYTES = 1 << 23
KITTY_CHUNK = 4096
QUERY_SECONDS = 1.0
"""How long a terminal may take to say what it can do. It is asked once per process."""

_MULTIPLEXERS = ('TMUX', 'STY', 'ZELLIJ', 'INSIDE_EMACS')
_BY_TERM: dict[str, Protocol] = {
    'xterm-kitty': 'kitty',
    'xterm-ghostty': 'kitty',
    'foot': 'sixel',
    'foot-extra': 'sixel',
    'mlterm': 'sixel',
    'contour': 'sixel',
}
_BY_PROGRAM: dict[str, Protocol] = {
    'ghostty': 'kitty',
    'iTerm.app': 'iterm2',
    'WezTerm': 'iterm2',
    'mintty': 'iterm2',
}

QUESTION = '\033[c'
"""Asks a terminal for its attributes."""

ANSWER = re.compile(r'\x1b\[\?([\d;]*)c')
_SIXEL_ATTRIBUTE = '4'
_knows_sixel: dict[int, bool] = {}
"""By terminal, as far as they were asked."""


def protocol_of(stream: TextIO) -> Protocol | None:
    """The protocol that the terminal of this stream knows; None if it shows no pictures, or is no terminal."""
    if not _may_show(stream):
        return None
    return _named_protocol() or ('sixel' if _says_sixel(stream.fileno()) else None)


def needs_question(stream: TextIO) -> bool:
    """Whether only the terminal itself can say what it knows. The next one to call `protocol_of` would ask it."""
    return _may_show(stream) and _named_protocol() is None and stream.fileno() not in _knows_sixel


def note_answer(terminal: int, answer: str) -> None:
    """Keep what a terminal has said, or that it was asked by somebody who reads it; the answer is empty then."""
    found = ANSWER.search(answer)
    _knows_sixel[terminal] = found is not None and _SIXEL_ATTRIBUTE in found[1].split(';')


def _may_show(stream: TextIO) -> bool:
    term = os.environ.get('TERM', '')
    if not stream.isatty() or term in ('', 'dumb', 'linux') or term.startswith(('screen', 'tmux')):
        return False
    return not any(os.environ.get(name) for name in _MULTIPLEXERS)


def _named_protocol() -> Protocol | None:
    """The protocol of terminals that say who they are."""
    environment = os.environ
    known = _BY_TERM.get(environment['TERM']) or _BY_PROGRAM.get(environment.get('TERM_PROGRAM', ''))
    if known is not None:
        return known
    if environment.get('KITTY_WINDOW_ID') and not environment.get('TERM_PROGRAM'):
        return 'kitty'
    if environment.get('LC_TERMINAL') == 'iTerm2':  # ssh passes it on
        return 'iterm2'
    return None


def inline_picture(data: bytes, protocol: Protocol, stream: TextIO) -> str:
    """A PNG as a control sequence that fits the terminal; empty if it is damaged or too large."""
    size = png_size(data)
    if size is None or len(data) > MAX_BYTES or not 0 < size[0] * size[1] <= MAX_PIXELS:
        return ''
    screen = _screen(stream.fileno())
    share = screen.share(*size)
    columns = 0 if share >= 1 else max(1, int(size[0] * share / screen.cell_width))
    if protocol == 'sixel':
        return to_sixels(data, every=math.ceil(1 / share))
    text = base64.b64encode(data).decode('ascii')
    if protocol == 'kitty':
        return _kitty(text, columns)
    width = f'width={columns};' if columns else ''
    return f'\033]1337;File=inline=1;size={len(data)};{width}preserveAspectRatio=1:{text}\a'


def _kitty(text: str, columns: int) -> str:
    chunks = [text[start : start + KITTY_CHUNK] for start in range(0, len(text), KITTY_CHUNK)]
    scaled = f',c={columns}' if columns else ''
    sequence = ''
    for number, chunk in enumerate(chunks, 1):
        control = f'a=T,f=100,q=2{scaled},' if number == 1 else ''  # q=2: the terminal must not answer into stdin
        sequence += f'\033_G{control}m={int(number < len(chunks))};{chunk}\033\\'
    return sequence


@dataclass(frozen=True)
class _Screen:
    rows: int
    columns: int
    cell_width: float
    cell_height: float

    def share(self, width: int, height: int) -> float:
        """The factor by which a picture fits, with a line of text below; at most 1."""
        room = max(1, self.columns - 1) * self.cell_width, max(1, self.rows - 2) * self.cell_height
        return min(1.0, room[0] / width, room[1] / height)


def _screen(terminal: int) -> _Screen:
    size = (0, 0, 0, 0)
    with contextlib.suppress(ImportError, OSError):
        import fcntl
        import termios

        size = struct.unpack('HHHH', fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8)))
    rows, columns = size[0] or 24, size[1] or 80
    return _Screen(rows, columns, size[2] / columns or 8.0, size[3] / rows or 16.0)


def _says_sixel(terminal: int) -> bool:
    """Ask the terminal once. False if it does not answer, or is not ours to read."""
    if terminal not in _knows_sixel:
        note_answer(terminal, _ask(terminal))
    return _knows_sixel[terminal]


def _ask(terminal: int) -> str:
    try:
        import termios
        import tty

        # Refused for a terminal that is not that of our session.
        if os.tcgetpgrp(terminal) != os.getpgrp():
            return ''
        with open(os.ttyname(terminal), 'r+b', buffering=0) as device:
            before = termios.tcgetattr(device)
            if select.select([device], [], [], 0)[0]:  # the user has typed ahead: it is not lost
                return ''
            try:
                tty.setcbreak(device.fileno(), termios.TCSANOW)
                device.write(QUESTION.encode())
                return _read_answer(device.fileno())
            finally:
                termios.tcsetattr(device, termios.TCSANOW, before)
    except (ImportError, OSError):
        return ''
    except Exception as error:  # `termios.error` is no `OSError`
        if type(error).__module__ != 'termios':
            raise
        return ''


def _read_answer(device: int) -> str:
    answer, end = '', time.monotonic() + QUERY_SECONDS
    while (left := end - time.monotonic()) > 0 and select.select([device], [], [], left)[0]:
        answer += os.read(device, 100).decode(errors='replace')
        if ANSWER.search(answer):
            break
    return answer
