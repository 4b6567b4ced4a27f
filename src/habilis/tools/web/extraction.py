"""Documents as Markdown, by processes that are killed when a document takes too long."""

import asyncio
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import cast

MAX_SECONDS = 20.0
"""Maximum time for one document."""

MAX_WORKER_BYTES = 2 << 30
MAX_WORKERS = max(1, min(4, os.cpu_count() or 1))
_WORKER = Path(__file__).with_name('extraction_worker.py')


class ExtractionError(Exception):
    """A document has no text for us; the message says why."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a document, as Markdown, and what is known of it."""

    title: str
    text: str
    date: str | None
    author: str | None
    links: tuple[tuple[str, str], ...]
    """Text and URL of each."""


class Extraction:
    """A few processes that wait for documents. They start with the first ones, and end with `close`."""

    def __init__(self, seconds: float = MAX_SECONDS) -> None:
        self._seconds = seconds
        self._slots = threading.BoundedSemaphore(MAX_WORKERS)
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._times_closed = 0

    async def extract(self, data: bytes, *, kind: str, charset: str, url: str, whole: bool) -> Extracted:
        """The text of a document of a MIME type. Raises `ExtractionError`."""
        request = f'{json.dumps([len(data), kind, charset, url, whole])}\n'.encode() + data
        reply = await asyncio.to_thread(self._ask, request)
        if 'error' in reply:
            raise ExtractionError(str(reply['error']))
        fields = cast('dict[str, str | None]', reply)
        links = cast('list[tuple[str, str]]', reply['links'])
        return Extracted(
            title=fields['title'] or '',
            text=fields['text'] or '',
            date=fields['date'],
            author=fields['author'],
            links=tuple((text, url) for text, url in links),
        )

    def _ask(self, request: bytes) -> dict[str, object]:
        with self._slots:
            times_closed = self._times_closed
            try:
                worker = self._idle.get_nowait()
            except queue.Empty:
                worker = _start()
            timer = threading.Timer(self._seconds, worker.kill)
            timer.start()
            try:
                reply = _exchange(worker, request)
            finally:
                timer.cancel()
            if reply is None:
                _end(worker)
                msg = f'its text could not be extracted within {self._seconds:g} s'
                raise ExtractionError(msg)
            with self._closing:
                if times_closed == self._times_closed:
                    self._idle.put(worker)
                    return reply
            _end(worker)  # it was closed meanwhile: whoever waited for the document was cancelled
            return reply

    def close(self) -> None:
        """End the processes. Later documents start new ones."""
        with self._closing, contextlib.suppress(queue.Empty):
            self._times_closed += 1
            while True:
                _end(self._idle.get_nowait())


def _start() -> subprocess.Popen[bytes]:
    # without the environment: no key is there for whoever finds an error in a parser
    env = {name: value for name in ('PATH', 'SYSTEMROOT') if (value := os.environ.get(name))}
    command = [sys.executable, '-I', str(_WORKER), str(MAX_WORKER_BYTES)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)


def _exchange(worker: subprocess.Popen[bytes], request: bytes) -> dict[str, object] | None:
    """The reply of a worker; None if it has ended."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(request)
        worker.stdin.flush()
        return json.loads(worker.stdout.readline())
    except (BrokenPipeError, json.JSONDecodeError):
        return None


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    with contextlib.suppress(BrokenPipeError), worker:  # what it has not read is discarded
        pass
