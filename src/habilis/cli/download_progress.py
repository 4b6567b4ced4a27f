"""A line that shows how far a download is."""

import contextlib
import time
from collections.abc import Callable, Generator
from typing import TextIO

EVERY = 0.2
"""Seconds between two looks at a terminal."""

STEPS = 10
"""Lines in all, where there is no terminal."""


@contextlib.contextmanager
def download_line(stream: TextIO) -> Generator[Callable[[int, int], None]]:
    """Gives a function to be told how many bytes are in, and of how many."""
    last_time, last_part = 0.0, 0
    drawn = False

    def show(done: int, total: int) -> None:
        nonlocal last_time, last_part, drawn
        text = f'habilis: downloading: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({done / max(1, total):.0%})'
        if stream.isatty():
            if time.monotonic() - last_time >= EVERY or done == total:
                last_time, drawn = time.monotonic(), True
                print(f'\r\033[K{text}', end='', file=stream, flush=True)
        elif (part := STEPS * done // max(1, total)) > last_part:
            last_part = part
            print(text, file=stream, flush=True)

    try:
        yield show
    finally:
        if drawn:
            print(file=stream, flush=True)
