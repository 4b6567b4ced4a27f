"""Pictures inside a terminal: which protocol it knows, and a PNG in that protocol."""

import base64
import contextlib
import os
import struct
from dataclasses import dataclass
from typing import Literal, TextIO

Protocol = Literal['kitty', 'iterm2']

MAX_BYTES = 1 << 23
MAX_PIXELS = 1 << 22
KITTY_CHUNK = 4096

_MULTIPLEXERS = ('TMUX', 'STY', 'ZELLIJ', 'INSIDE_EMACS')
_BY_TERM: dict[str, Protocol] = {
    'xterm-kitty': 'kitty',
    'xterm-ghostty': 'kitty',
}
_BY_PROGRAM: dict[str, Protocol] = {
    'ghostty': 'kitty',
    'iTerm.app': 'iterm2',
    'WezTerm': 'iterm2',
    'mintty': 'iterm2',
}


def protocol_of(stream: TextIO) -> Protocol | None:
    """The protocol that the terminal of this stream knows; None if it shows no pictures, or is no terminal."""
    return _named_protocol() if _may_show(stream) else None


def png_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None if this is not the start of a PNG."""
    if not data.startswith(b'\x89PNG\r\n\x1a\n') or data[12:16] != b'IHDR' or len(data) < 33:
        return None
    width, height = struct.unpack('>II', data[16:24])
    return width, height


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
