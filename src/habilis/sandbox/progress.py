"""A progress line on stderr during slow operations."""

import contextlib
import sys
import threading
import time
from collections.abc import Generator

from habilis.core.status_line import current_status


@contextlib.contextmanager
def progress(what: str, *, after: float = 0.0) -> Generator[None]:
    """Show what is happening, if it takes longer than `after` seconds; on a terminal with the elapsed seconds."""
    started = time.monotonic()
    if (status := current_status()).is_live:
        status.set_phase(what)
        yield
        return
    if not sys.stderr.isatty() and not after:
        print(f'habilis: {what} …', file=sys.stderr, flush=True)
        yield
        return
    done, shown = threading.Event(), threading.Event()

    def count() -> None:
        pause = after or 0.2
        while not done.wait(pause):
            pause = 0.2
            if not sys.stderr.isatty():
                print(f'habilis: {what} …', file=sys.stderr, flush=True)
                return
            shown.set()
            print(f'\rhabilis: {what} … {time.monotonic() - started:.0f} s', end='', file=sys.stderr, flush=True)

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if shown.is_set() or (not after and sys.stderr.isatty()):
            print(f'\r\033[Khabilis: {what}: {time.monotonic() - started:.1f} s', file=sys.stderr, flush=True)
