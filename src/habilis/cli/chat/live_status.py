"""The status line of a turn as a part of the prompt, which draws it above the line that the user types."""

import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from habilis.core.status_line import ASCII_FRAMES, FRAMES, Preview, StatusLine


class PromptStatus(StatusLine):
    """A status line that is drawn by somebody else. Unfinished text is shown above it, as everywhere."""

    def __init__(self, redraw: Callable[[], None]) -> None:
        super().__init__(sys.__stdout__)
        self._redraw = redraw
        self._terminal = 1
        self._frames = FRAMES if 'utf' in (self._stream.encoding or '').lower() else ASCII_FRAMES

    def start(self, phase: str) -> bool:
        """Show it."""
        self._phase = phase
        self._began = time.monotonic()
        self.is_live = True
        StatusLine.current = self
        threading.Thread(target=self._animate, name='habilis-status', daemon=True).start()
        return True

    def stop(self) -> None:
        """Show it no longer."""
        self.is_live = False
        self._ended.set()
        if StatusLine.current is self:
            StatusLine.current = None
        self._redraw()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Nothing to do: a question is asked in the same prompt."""
        yield

    def set_preview(self, preview: Preview | None) -> None:
        """Unfinished text."""
        super().set_preview(preview)
        self._redraw()

    def rows(self) -> Sequence[str]:
        """What to show, with colours."""
        return self._rows() if self.is_live else ()

    def say(self, text: str) -> None:
        """Print a line above the prompt."""
        print(text, flush=True)

    def _draw(self) -> None:
        self._redraw()
