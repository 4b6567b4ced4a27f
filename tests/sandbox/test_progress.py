"""Slow operations say what they do: in the status line if one is shown, else on stderr."""

import pytest

from habilis.core.status_line import StatusLine
from habilis.sandbox.progress import progress


class Live(StatusLine):
    is_live = True

    def __init__(self) -> None:
        self.phases: list[str] = []

    def set_phase(self, phase: str) -> None:
        self.phases.append(phase)


def test_a_status_line_that_is_shown_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = Live()
    monkeypatch.setattr(StatusLine, 'current', status)
    with progress('Building'):
        assert status.phases == ['Building']
    assert capsys.readouterr().err == ''


def test_without_one_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with progress('Building'):
        pass
    assert capsys.readouterr().err == 'habilis: Building …\n'
