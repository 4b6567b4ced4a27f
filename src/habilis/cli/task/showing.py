"""What a person sees of a run, on stderr. The answer alone goes to stdout, and whoever runs the agent prints it."""

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from habilis.core.events import Event, EventKind
from habilis.core.logs import configure_logging, log_to_terminal
from habilis.core.settings import Settings, load_settings

if TYPE_CHECKING:
    from habilis.agent.hooks.logs import LogEvents
    from habilis.agent.hooks.terminal import TerminalView

OURS: frozenset[EventKind] = frozenset({'answer', 'question', 'approval_asked', 'run_failed'})
"""What the command shows itself: the answer on stdout, questions where they are answered, errors as its last line."""


def read_settings(load: Callable[[], Settings] = load_settings) -> Settings:
    """The settings that hold here. What is logged, as about a name that is none of them, is shown on stderr."""
    log_to_terminal()
    settings = load()
    configure_logging(settings)
    return settings


class View:
    """Shows a run while it goes on; nothing, if it is to be quiet. Logs it, if the settings say so."""

    def __init__(self, *, quiet: bool, header: bool = True) -> None:
        self._hidden = OURS if header else OURS | {'run_started'}
        self._show = None if quiet else _view_on_stderr()
        self._log = _log_of_events()
        self._lines = log_to_terminal()
        if self._show is not None:
            self._lines.has_open_line = lambda: self._show is not None and self._show.has_open_line

    def __call__(self, event: Event) -> None:
        """The hook."""
        if self._show is not None and event.kind not in self._hidden:
            self._show(event)
        if self._log is not None:
            self._log(event)
            self._lines.flush()

    def make_room(self, *, after_ctrl_c: bool = False) -> None:
        """Have what is written next begin a line. A terminal shows `^C` where the cursor was."""
        if after_ctrl_c and sys.stderr.isatty():
            print(file=sys.stderr, flush=True)
        elif self._show is not None:
            self._show.end_line()
        self._lines.flush()


def _view_on_stderr() -> 'TerminalView':
    from rich.console import Console

    from habilis.agent.hooks.terminal import TerminalView

    return TerminalView(Console(stderr=True, highlight=False))


def _log_of_events() -> 'LogEvents | None':
    """None if only warnings are wanted: the view, or the command itself, tells of those."""
    if not logging.getLogger('habilis.agent').isEnabledFor(logging.INFO):
        return None
    from habilis.agent.hooks.logs import LogEvents

    return LogEvents()


def say(text: str) -> None:
    """One line of ours."""
    print(f'habilis: {text}', file=sys.stderr, flush=True)
