"""Progress of a run on stderr. Only the answer goes to stdout, and the command prints it."""

import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from habilis.agent.events import CellFinished
from habilis.agent.hooks.status import RunStatus
from habilis.cli.missing_packages import missing_package
from habilis.cli.pictures import is_picture, show_pictures
from habilis.core.logs import log_to_terminal
from habilis.core.status_line import current_status

if TYPE_CHECKING:
    from habilis.agent.events import AgentEvent
    from habilis.agent.hooks.logs import LogEvents
    from habilis.agent.hooks.terminal import TerminalView

PRINTED_BY_COMMAND: frozenset[str] = frozenset({'answer', 'question', 'approval_asked', 'run_failed'})
"""Events the view skips: the command itself prints the answer, questions and errors."""


class RunDisplay:
    """Hook that shows a run while it is running, unless `quiet`. Logs its events if the settings ask for it.

    Retries are shown if `verbose`; else the status line says so, and the last error is enough. Pictures of cells are
    saved in the folder `pictures`, if there is one.
    """

    def __init__(
        self, *, quiet: bool, verbose: bool = False, header: bool = True, pictures: Path | None = None
    ) -> None:
        shown = {'run_started': header, 'retry': verbose}
        self._hidden = PRINTED_BY_COMMAND | {kind for kind, is_shown in shown.items() if not is_shown}
        self._view = None if quiet else _view_on_stderr()
        self._pictures = pictures
        self.has_shown_answer = False
        """Whether the answer was shown while the model wrote it."""

        self._status = RunStatus(current_status())
        self._log = _event_log()
        self._log_lines = log_to_terminal()
        if self._view is not None:
            self._log_lines.has_open_line = lambda: self._view is not None and self._view.has_open_line

    def __call__(self, event: 'AgentEvent') -> None:
        """Handle an event of the run."""
        self._status(event)
        if self._view is not None and event.kind == 'answer' and not event.parent:
            self.has_shown_answer = self._view.has_shown(event)
        hidden = self._hidden - {'run_started', 'run_failed'} if event.parent else self._hidden
        if isinstance(event, CellFinished) and self._pictures is not None:
            show_cell(event, self._view, sys.stderr, self._pictures, add='habilis run --packages')
        elif self._view is not None and event.kind not in hidden:
            self._view(event)
        if self._log is not None:
            self._log(event)
            self._log_lines.flush()

    def end_line(self) -> None:
        """Make the next output start on a new line."""
        if self._view is not None:
            self._view.end_line()
        self._log_lines.flush()


def show_cell(
    event: CellFinished,
    view: 'TerminalView | None',
    stream: TextIO,
    folder: Path,
    add: str,
    *,
    with_files: bool = True,
) -> None:
    """Show what a cell has made, with its pictures, which are saved in a folder. Without a view they are only saved.

    `add` is what to write before the name of a package to add it; `with_files` names those of the workspace.
    """
    others = tuple(display for display in event.cell.displays if not is_picture(display))
    if view is not None:
        files = tuple(file for file in event.cell.files if with_files or file.path.startswith('/'))
        view(replace(event, cell=replace(event.cell, displays=others, files=files)))
        if package := missing_package(event.cell):
            print(f'{package} is not in the sandbox; {add} {package} adds it', file=stream, flush=True)
    show_pictures(event.cell, None if view is None else stream, folder)


def _view_on_stderr() -> 'TerminalView':
    from rich.console import Console

    from habilis.agent.hooks.terminal import TerminalView

    return TerminalView(Console(stderr=True, highlight=False))


def _event_log() -> 'LogEvents | None':
    """None if only warnings are logged: the view or the command already prints those."""
    if not logging.getLogger('habilis.agent').isEnabledFor(logging.INFO):
        return None
    from habilis.agent.hooks.logs import LogEvents

    return LogEvents()
