"""The live line: where it may be drawn, and what is drawn."""

import io
import os
import pty
import select
import struct
import termios
from collections.abc import Generator
from fcntl import ioctl
from typing import TextIO

import pytest

from habilis.core import status_line
from habilis.core.status_line import StatusLine, can_show, current_status


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Generator[tuple[TextIO, int]]:
    """A terminal of 40 columns, and its other end."""
    master, slave = pty.openpty()
    resize(master, 40)
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.delenv('HABILIS_STATUS', raising=False)
    monkeypatch.delenv('XTERM_VERSION', raising=False)
    monkeypatch.setattr(status_line, 'TICK', 1000.0)  # nothing is drawn but what the test asks for
    with open(slave, 'w', encoding='utf-8') as stream:
        yield stream, master
    os.close(master)


def resize(master: int, columns: int) -> None:
    ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))


def read(master: int) -> str:
    """All that was written."""
    data = b''
    while select.select([master], [], [], 0.3)[0]:
        data += os.read(master, 65536)
    return data.decode()


def test_it_needs_a_terminal_that_obeys(terminal: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch) -> None:
    stream, _ = terminal
    assert can_show(stream)
    assert not can_show(io.StringIO())
    monkeypatch.setenv('HABILIS_STATUS', 'false')
    assert not can_show(stream)
    monkeypatch.delenv('HABILIS_STATUS')
    monkeypatch.setenv('TERM', 'dumb')
    assert not can_show(stream)


def test_what_is_printed_appears_above_it_and_it_is_gone_at_the_end(terminal: tuple[TextIO, int]) -> None:
    stream, master = terminal
    line = StatusLine(stream)
    assert line.start('working')
    assert current_status() is line
    assert not StatusLine(stream).start('another')
    assert 'working · 0 s' in read(master)
    print('hello', file=stream)
    assert read(master).startswith('\r\x1b[Khello\r\n')
    print('half a line', end='', file=stream)
    assert read(master).endswith('\r\x1b[Khalf a line')
    print(file=stream)
    assert 'working' in read(master)
    line.stop()
    assert read(master) == '\r\x1b[K'
    assert 'write' not in vars(stream)
    assert not current_status().is_live


def test_it_is_silent_while_a_person_is_asked(terminal: tuple[TextIO, int]) -> None:
    stream, master = terminal
    line = StatusLine(stream)
    line.start('working')
    with line.paused():
        read(master)
        print('Name?', file=stream)
        assert 'working' not in read(master)
    print('Thanks', file=stream)
    assert 'working' in read(master)
    line.stop()


@pytest.mark.parametrize('columns', [1, 5, 12, 40])
def test_a_row_is_never_wider_than_the_window(terminal: tuple[TextIO, int], columns: int) -> None:
    stream, master = terminal
    resize(master, columns)
    line = StatusLine(stream)
    line.start('日本 waiting for a\x1b[2J tool with a long name')
    drawn = read(master).replace('\x1b[2m', '').replace('\x1b[0m', '')
    assert '\x1b' not in drawn
    wide = sum(char in '日本' for char in drawn)
    assert len(drawn) + wide <= max(1, columns - 1)
    line.stop()


def test_rows_that_a_narrow_window_has_wrapped_are_erased(terminal: tuple[TextIO, int]) -> None:
    stream, master = terminal
    line = StatusLine(stream)
    line.start('x' * 100)
    line.set_preview(lambda width: ['a' * width, 'b'])
    line.say('draw')
    read(master)
    resize(master, 20)
    line.stop()
    # 39 columns are two rows now; the row of one letter stays one.
    assert read(master) == '\r\x1b[K' + '\x1b[A\x1b[K' * 4


def test_a_preview_that_fails_is_left_out(terminal: tuple[TextIO, int]) -> None:
    stream, master = terminal
    line = StatusLine(stream)
    line.start('working')
    line.set_preview(lambda _width: 1 / 0)  # pyright: ignore[reportArgumentType]
    line.say('draw')
    assert 'working' in read(master)
    line.stop()
