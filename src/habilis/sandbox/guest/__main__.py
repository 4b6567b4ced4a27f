"""Runs the kernel in a process, for backends that talk to it through pipes.

    python -m habilis.sandbox.guest '{"memory_mb": 256, "places": {"/workspace": "/tmp/folder"}}'

Messages are lines of JSON text. Lines to the host start with `q` (a message of the kernel) or `a` (the answer to a
request). `places` maps paths inside the sandbox to paths of this process; `stdout` is a descriptor for output that
bypasses the kernel, which goes to stderr without it. `proxy_port` is the port of a proxy to the network. `mark` is
written to stderr before each answer, for hosts that cannot see otherwise which output belongs to the request.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TextIO

from habilis.sandbox.guest import network, state
from habilis.sandbox.guest.children import FORK, detach_after_fork
from habilis.sandbox.guest.kernel import Kernel

MAX_STATE = 64 << 20
"""Max bytes of the variables that are saved after a cell."""

MakeFork = Callable[['HostPipes'], Callable[[], bool]]


def main(settings: dict[str, Any], make_fork: MakeFork | None = None) -> None:
    """Handle requests until the pipe is closed. A backend whose guests can be forked makes the function for it, which
    returns in both guests: True in the new one, which has another channel."""
    channel = HostPipes(*_take_pipes(settings.get('stdout', 2)))
    fork = make_fork(channel) if make_fork else None
    mark = settings.get('mark', '').encode()
    errors = os.dup(2) if mark else 2
    _limit_memory(settings.get('memory_mb'))
    kernel = Kernel(channel.send, settings.get('places') or {})
    end_if_child = detach_after_fork(kernel.bridge, kernel.stdout, kernel.stderr)
    state.max_bytes = MAX_STATE
    network.proxy_port = settings.get('proxy_port')
    sleep, select_files = time.sleep, select.select
    kernel.install()
    time.sleep, select.select = sleep, select_files  # as there are threads, and the host can kill what waits
    for request in channel.requests():
        if request == FORK and fork is not None:
            if fork():
                channel.forget()
            else:
                channel.answer('')
            continue
        try:
            answer = kernel.enter(request)
        finally:
            end_if_child()
        if mark:
            os.write(errors, mark)
        channel.answer(answer)


class HostPipes:
    """The pipes to the host. Threads of a cell may send messages, but only while a request is handled."""

    def __init__(self, received: TextIO, sent: BinaryIO) -> None:
        self._in, self._out = received, sent
        self._lock = threading.RLock()
        self._is_handling = False

    def requests(self) -> Iterator[str]:
        """The requests of the host, one after another."""
        for line in self._in:
            self._is_handling = True
            yield json.loads(line)

    def answer(self, answer: str) -> None:
        """Answer the request."""
        with self._lock:
            self._is_handling = False
            self._write('a', answer)

    def forget(self) -> None:
        """Leave the request to another process."""
        self._is_handling = False

    @property
    def descriptors(self) -> tuple[int, int]:
        """The pipes of requests and of answers."""
        return self._in.fileno(), self._out.fileno()

    def write_line(self, line: bytes) -> None:
        """Write a line that is no message."""
        self._out.write(line + b'\n')
        self._out.flush()

    def send(self, message: str) -> str:
        """Send a message of the kernel and wait for the reply."""
        with self._lock:
            if self._is_handling:
                self._write('q', message)
                return str(json.loads(self._in.readline()))
        if message[:1] in 'oe':  # output of a thread after its cell
            os.write(1 if message[0] == 'o' else 2, message[1:].encode())
            return ''
        msg = 'a thread that outlived its cell cannot use tools, input or the network of the sandbox'
        raise RuntimeError(msg)

    def _write(self, kind: str, text: str) -> None:
        encoded = json.dumps(text, ensure_ascii=False)
        try:
            self._out.write(f'{kind}{encoded}\n'.encode())
        except UnicodeEncodeError:  # half of a surrogate pair
            self._out.write(f'{kind}{json.dumps(text)}\n'.encode())
        self._out.flush()


def _take_pipes(stdout: int) -> tuple[TextIO, BinaryIO]:
    """Move the pipes to other descriptors: output of a cell to descriptor 1 must not be taken for an answer."""
    requests, replies = os.fdopen(os.dup(0), encoding='utf-8'), os.fdopen(os.dup(1), 'wb')
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(stdout, 1)
    if stdout > 2:
        os.close(stdout)
    return requests, replies


def _limit_memory(megabytes: int | None) -> None:
    if megabytes is not None and sys.platform != 'win32':
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


if __name__ == '__main__':
    main(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
