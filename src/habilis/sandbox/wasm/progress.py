"""A progress line on stderr during slow operations."""

import contextlib
import sys
import threading
import time
from collections.abc import Generator


@contextlib.contextmanager
def progress(what: str) -> Generator[None]:
    """Print what is happening; on a terminal with the elapsed seconds."""
    started = time.monotonic()
    if not sys.stderr.isatty():
        print(f'habilis: {what} …', file=sys.stderr, flush=True)
        yield
        return
    done = threading.Event()

    def count() -> None:
        while not done.wait(0.2):
            print(f'\rhabilis: {what} … {time.monotonic() - started:.0f} s', end='', file=sys.stderr, flush=True)

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        print(f'\r\033[Khabilis: {what}: {time.monotonic() - started:.1f} s', file=sys.stderr, flush=True)
