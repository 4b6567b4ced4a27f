"""The picture in the README shows what a terminal would show."""

import importlib.util
import sys

from tests.cases import each_case
from tests.house.repository import ROOT

SPEC = importlib.util.spec_from_file_location('recording', ROOT / 'docs' / 'recording.py')
assert SPEC is not None
assert SPEC.loader is not None
recording = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(recording)


@each_case(
    ('written', 'shown'),
    [
        ('one\r\ntwo\r\n', ['one', 'two', '']),
        ('working · 3 s\r\x1b[Kdone\r\n', ['done', '']),
        ('a\r\nb\r\x1b[K\x1b[A\x1b[Kc', ['c', '']),
        ('x' * 81, ['x' * 80, 'x']),
        ('\x1b[1mbold\x1b[0m', ['\x1b[1mbold\x1b[0m']),
    ],
)
def test_the_screen_that_is_left(written: str, shown: list[str]) -> None:
    screen = recording.Screen()
    screen.write(written)
    assert screen.lines() == shown


def test_a_real_command_is_drawn() -> None:
    command = [sys.executable, '-c', "print('\\033[31mred\\033[0m')"]
    written = recording.record(command)
    assert written == '\x1b[31mred\x1b[0m\r\n'
    drawn = recording.draw(['program'], written)
    assert drawn.startswith('<svg')
    assert 'red</text>' in drawn
