"""Shows one turn: Markdown, code, output, pictures, and how long it took."""

import contextlib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from habilis.agent.events import AgentEvent, CellFinished, RunFinished, RunResumed, RunStarted, StepFinished
from habilis.agent.hooks.status import RunStatus
from habilis.agent.hooks.terminal import TerminalView
from habilis.core.folders import data_folder
from habilis.core.status_line import current_status
from habilis.sandbox.contract import Display

HIDDEN = frozenset({'run_started', 'run_failed', 'approval_asked'})
"""Events that the chat shows itself, or that say nothing new in every turn."""

_ENDINGS = {'image/png': 'png', 'image/jpeg': 'jpg', 'image/svg+xml': 'svg', 'image/gif': 'gif'}


class TurnView:
    """Hook of one turn."""

    def __init__(self) -> None:
        self._view = TerminalView()
        self._status = RunStatus(current_status())
        self.has_started = False
        """Whether the run of the turn is recorded, so that it can be resumed."""

    def __call__(self, event: AgentEvent) -> None:
        """Show an event."""
        self._status(event)
        if isinstance(event, RunStarted | RunResumed):
            self.has_started = True
        if not _is_noise(event):
            self._view(event)
        if isinstance(event, CellFinished):
            show_pictures(event.cell.displays)

    def end(self) -> None:
        """Print what is unfinished."""
        self._view.end_line()


def _is_noise(event: AgentEvent) -> bool:
    """Whether an event says nothing that a person in a chat wants to know, such as the end of a plain answer."""
    match event:
        case StepFinished(finished=step):
            return step.cell is None
        case RunFinished(result=result):
            return result.ended == 'answer' and not result.summary
        case _:
            return event.kind in HIDDEN


def show_pictures(displays: Sequence[Display]) -> None:
    """Save the pictures of a cell, and print where they are."""
    for display in displays:
        if display.mime in _ENDINGS:
            with contextlib.suppress(OSError):  # a full disk does not end the turn
                print(f'[picture: {_saved(display)}]', flush=True)


def _saved(display: Display) -> Path:
    data = display.data.encode() if isinstance(display.data, str) else display.data
    folder = data_folder() / 'pictures'
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f'{sha256(data).hexdigest()[:12]}.{_ENDINGS[display.mime]}'
    path.write_bytes(data)
    return path
