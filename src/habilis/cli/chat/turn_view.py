"""Shows one turn: Markdown, code, output, pictures, and how long it took."""

import sys
from pathlib import Path

from habilis.agent.events import AgentEvent, CellFinished, RunFinished, StepFinished
from habilis.agent.hooks.status import RunStatus
from habilis.agent.hooks.terminal import TerminalView
from habilis.assistant import FilesEdited
from habilis.cli.chat.file_changes import show_edits
from habilis.cli.chat.progress import TurnProgress
from habilis.cli.run_view import show_cell
from habilis.core.status_line import current_status
from habilis.sandbox.guest.hints import NO_FILES, NO_NETWORK, hint_in

HIDDEN = frozenset({'run_started', 'run_failed', 'approval_asked', 'question', 'retry'})
"""Events that the chat shows itself, that the status line shows, or that say nothing new."""

ADVICE = {
    NO_FILES: '(the code sees none of your files: /share shares this folder)',
    NO_NETWORK: '(the code has no network: start the chat with --network)',
}
"""What a person in the chat is told instead of the advice for programs."""


class TurnView:
    """Hook of one turn."""

    def __init__(self, pictures: Path, progress: TurnProgress | None, *, shows_files: bool) -> None:
        """`progress` shows a part of the events. `shows_files`: name the files that a cell has written, not diffs."""
        self._progress = progress
        self._folder = pictures
        self._shows_files = shows_files
        self._view = TerminalView(advice=lambda traceback: ADVICE.get(hint_in(traceback), ''))
        self._status = RunStatus(current_status())

    def __call__(self, event: AgentEvent | FilesEdited) -> None:
        """Show an event."""
        if isinstance(event, FilesEdited):
            show_edits(self._view, event.edits)
            return
        self._status(event)
        shown = None if self._progress is None else self._progress.take(event)
        if shown:
            self._view.end_line()
            self._view.show_line(shown)
        if isinstance(event, CellFinished):
            show_cell(event, self._view, sys.stdout, self._folder, add='/packages', with_files=self._shows_files)
        elif shown is None and not _is_noise(event):
            self._view(event)

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
