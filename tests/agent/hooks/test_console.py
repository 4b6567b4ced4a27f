"""The console: printing and drawing at the same time."""

import io
import threading

from rich.console import Console
from rich.text import Text

from habilis.agent.hooks.console import SafeConsole


class BusyTerminal(io.StringIO):
    """A terminal on which each write waits until it may end."""

    def __init__(self) -> None:
        super().__init__()
        self.is_writing = threading.Event()
        self.may_end = threading.Event()

    def write(self, text: str, /) -> int:
        """Wait, then write."""
        self.is_writing.set()
        assert self.may_end.wait(60)
        return super().write(text)


def test_a_draft_is_drawn_while_something_is_printed() -> None:
    """Whoever prints waits for the status line, and the status line waits for the rows of the draft."""
    terminal = BusyTerminal()
    console = SafeConsole(Console(file=terminal, force_terminal=True, width=40))
    printing = threading.Thread(target=console.line, args=('printed',), daemon=True)
    printing.start()
    assert terminal.is_writing.wait(60)
    rows: list[str] = []
    drawing = threading.Thread(target=lambda: rows.extend(console.draft_rows(Text('draft'), 20)), daemon=True)
    drawing.start()
    drawing.join(60)
    assert rows == ['draft']
    terminal.may_end.set()
    printing.join(60)
    assert terminal.getvalue() == 'printed\n'
