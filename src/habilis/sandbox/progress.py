"""A progress line on stderr during slow operations."""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Generator

from habilis.core.status_line import StatusLine


@contextlib.contextmanager
def progress(what: str, *, after: float = 0.0) -> Generator[None]:
    """Print what is happening, if it takes longer than `after` seconds; on a terminal with the elapsed seconds.

    Where there is a live line, it says so.
    """
    if (line := StatusLine.current) is not None:
        with line.phase(what):
            yield
        return
    started = time.monotonic()
    if not sys.stderr.isatty() and not after:
        _write(f'habilis: {what} …\n')
        yield
        return
    done, shown = threading.Event(), threading.Event()

    def count() -> None:
        pause = after or 0.2
        while not done.wait(pause):
            pause = 0.2
            if not sys.stderr.isatty():
                _write(f'habilis: {what} …\n')
                return
            shown.set()
            _write(f'\r{_row(f"habilis: {what}", f" … {time.monotonic() - started:.0f} s")}')

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if shown.is_set() or (not after and sys.stderr.isatty()):
            _write(f'\r\033[Khabilis: {what}: {time.monotonic() - started:.1f} s\n')


def _row(text: str, end: str) -> str:
    """The text, truncated so that it stays on one row: a return does not reach the row above."""
    width = shutil.get_terminal_size().columns - len(end) - 1
    return f'{text if len(text) <= width else text[:width]}{end}'


def _write(text: str) -> None:
    """One write for a line and its end: `print` makes two, between which another thread's line may come."""
    sys.stderr.write(text)
    sys.stderr.flush()
