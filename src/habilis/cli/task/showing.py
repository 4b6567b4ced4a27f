"""What a person sees of a run, on stderr. The answer alone goes to stdout, and whoever runs the agent prints it."""

import io
import sys
from typing import TYPE_CHECKING

from habilis.core.events import Event, EventKind
from habilis.core.logs import configure_logging, log_to_terminal
from habilis.core.settings import Settings

if TYPE_CHECKING:
    from habilis.agent.hooks.terminal import TerminalView

OURS: frozenset[EventKind] = frozenset({'answer', 'question', 'approval_asked', 'run_failed'})
"""What the command shows itself: the answer on stdout, questions where they are answered, errors as its last line."""


def prepare_terminal(settings: Settings) -> None:
    """Show what is logged, and take text that this terminal cannot show: a model may write anything."""
    configure_logging(settings)
    log_to_terminal()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')


class View:
    """Shows a run while it goes on; nothing, if it is to be quiet."""

    def __init__(self, *, quiet: bool, header: bool = True) -> None:
        self._hidden = OURS if header else OURS | {'run_started'}
        self._show = None if quiet else _view_on_stderr()

    def __call__(self, event: Event) -> None:
        """The hook."""
        if self._show is not None and event.kind not in self._hidden:
            self._show(event)

    def make_room(self, *, after_ctrl_c: bool = False) -> None:
        """Have what is written next begin a line. A terminal shows `^C` where the cursor was."""
        if after_ctrl_c and sys.stderr.isatty():
            print(file=sys.stderr, flush=True)
        elif self._show is not None:
            self._show.end_line()


def _view_on_stderr() -> 'TerminalView':
    from rich.console import Console

    from habilis.agent.hooks.terminal import TerminalView

    return TerminalView(Console(stderr=True, highlight=False))


def say(text: str) -> None:
    """One line of ours."""
    print(f'habilis: {text}', file=sys.stderr, flush=True)
