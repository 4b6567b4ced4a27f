"""Slow operations say what they do: on a line of their own, or in the live line."""

import io
import sys

import pytest

from habilis.core.status_line import StatusLine
from habilis.sandbox.progress import progress
from tests.waiting import until


class Shown(StatusLine):
    """A live line that nobody draws."""

    @property
    def now(self) -> str:
        """What it says."""
        return self._phase


def test_without_a_terminal_it_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress('Building'):
        pass
    assert capsys.readouterr().err == 'habilis: Building …\n'


def test_a_live_line_says_it_and_nothing_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Shown()
    line.set_phase('starting')
    monkeypatch.setattr(StatusLine, 'current', line)
    with progress('Building'):
        assert line.now == 'Building'
    assert line.now == 'starting'
    with progress('Building'):
        line.set_phase('reading the prompt')
    assert line.now == 'reading the prompt', 'what others say meanwhile stays'
    assert capsys.readouterr().err == ''


def test_a_line_and_its_end_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    monkeypatch.setattr(sys, 'stderr', Stream())
    with progress('Building'):
        pass
    assert written == ['habilis: Building …\n'], 'else two threads that report at once leave half a line'


async def test_on_a_narrow_terminal_the_line_stays_on_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stderr = Terminal()
    monkeypatch.setattr(sys, 'stderr', stderr)
    monkeypatch.setenv('COLUMNS', '30')
    with progress('Building something that has a very long name'):
        await until(lambda: '\r' in stderr.getvalue())
    shown = stderr.getvalue().split('\r')[1]
    assert len(shown) < 30
    assert shown.endswith(' … 0 s')
