"""Progress of a download, on one line of a terminal or on a few lines of a log."""

import contextlib
import time
from collections.abc import Callable, Generator
from typing import TextIO

from habilis.core.status_line import current_status

REFRESH_SECONDS = 0.2
LOG_LINES = 10
"""Number of lines printed where there is no terminal."""


@contextlib.contextmanager
def download_progress(stream: TextIO) -> Generator[Callable[[int, int], None]]:
    """Yields a function that takes the bytes received and the total."""
    last_time, last_part = 0.0, 0
    drawn = False
    status = current_status()

    def show(done: int, total: int) -> None:
        nonlocal last_time, last_part, drawn
        text = f'downloading: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({done / max(1, total):.0%})'
        if status.is_live:
            status.set_phase(text)
            return
        text = f'habilis: {text}'
        if stream.isatty():
            if time.monotonic() - last_time >= REFRESH_SECONDS or done == total:
                last_time, drawn = time.monotonic(), True
                print(f'\r\033[K{text}', end='', file=stream, flush=True)
        elif (part := LOG_LINES * done // max(1, total)) > last_part:
            last_part = part
            print(text, file=stream, flush=True)

    try:
        yield show
    finally:
        if drawn:
            print(file=stream, flush=True)
