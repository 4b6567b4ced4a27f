"""The host's side of the broker: starts it, and sends it requests."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, TypeVar

from habilis.core.errors import SandboxError
from habilis.sandbox.host.guest_folder import guest_folder
from habilis.sandbox.host.workers import after_fork
from habilis.sandbox.process import kernel_calls

INSIDE = tuple(
    f'sandbox/process/{name}.py'
    for name in (
        *('broker', 'confinement', 'fork_checks', 'forks', 'inside', 'kernel_calls', 'mapped_mounts', 'places'),
        *('seccomp', 'twins', 'users'),
    )
)
T = TypeVar('T')
ANSWER_SECONDS = 60.0
STATUS_SECONDS = 5.0
_PROGRAM = (
    'import gc, sys; gc.disable(); '  # no collection while modules are imported: they stay
    'sys.path.append({folder!r}); from habilis.sandbox.process.{module} import {name}; {name}()'
)


def python() -> str:
    """The Python of the host, which runs inside too."""
    return os.path.realpath(getattr(sys, '_base_executable', sys.executable))


def python_command(folder: str, module: str, name: str) -> list[str]:
    """The command that runs a function of the code for guests, in the Python of the host without its packages."""
    return [python(), '-I', '-S', '-B', '-c', _PROGRAM.format(folder=folder, module=module, name=name)]


class Contained:
    """A process that the broker has started or forked, with the parts of `subprocess.Popen` that a guest needs."""

    def __init__(self, pid: int, handle: int, status: int, streams: tuple[BinaryIO, BinaryIO, BinaryIO]) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = streams
        self._handle = handle
        self._status = status
        self._code: int | None = None
        self._lock, self._waiting = threading.Lock(), threading.Lock()

    def kill(self) -> None:
        """Kill it, and with it all processes of its namespace."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._handle >= 0:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end; its exit code, negative for a signal."""
        with self._waiting:  # two threads may close a guest at the same time
            if self._code is None:
                _wait_for(self._handle)
                told = _wait_for(self._status, STATUS_SECONDS)  # a guest may keep the pipe open, and tell nothing
                self._code = _exit_code(os.read(self._status, 20) if told else b'')
                with self._lock:
                    os.close(self._status)
                    os.close(self._handle)
                    self._handle = -1
            return self._code

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self._code is not None or _wait_for(self._handle, 0)

    def continued_by(self, pid: int, handle: int, status: int) -> 'Contained':
        """The process that continues this one, with its streams."""
        return Contained(pid, handle, status, (self.stdin, self.stdout, self.stderr))


def _wait_for(descriptor: int, seconds: float | None = None) -> bool:
    """Wait until a descriptor, with any number, is ready. False after a timeout."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def _exit_code(text: bytes) -> int:
    """The exit code as a forked guest tells it, whose first process may be under the control of its code."""
    try:
        return int(text)
    except ValueError:
        return -signal.SIGKILL


class BrokerClient:
    """Starts the broker with the first request. It ends with this process."""

    def __init__(self) -> None:
        # One thread that never ends: Linux kills the broker when the thread that started it ends.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix='habilis-process')
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.can_fork = False
        """Whether it may give forked guests namespaces of their own."""

    def ask(self, request: Mapping[str, object], descriptors: Sequence[int]) -> 'Answer':
        """Send a request. The answer may be awaited later."""
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with other:
                self._send(json.dumps(request).encode(), (other.fileno(), *descriptors))
        except BaseException:
            own.close()
            raise
        return Answer(own)

    def _send(self, data: bytes, descriptors: Sequence[int]) -> None:
        try:
            try:
                kernel_calls.send(self._connect(), data, descriptors)
            except BrokenPipeError:  # it was killed
                self._forget()
                kernel_calls.send(self._connect(), data, descriptors)
        except OSError as error:
            msg = f'the sandbox could not start: its broker has ended ({error})'
            raise SandboxError(msg) from error

    def run_in_thread(self, make: Callable[[], T]) -> T:
        """Start a process that is to end with this one, not with the calling thread."""
        return self._thread.submit(make).result()

    def _forget(self) -> None:
        with self._lock:
            if self._socket is not None and self._process is not None:
                self._socket.close()
                self._process.wait()
            self._socket = None

    def _connect(self) -> int:
        with self._lock:
            if self._socket is None:
                self._socket = self.run_in_thread(self._start)
            return self._socket.fileno()

    def _start(self) -> socket.socket:
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [*python_command(str(guest_folder(*INSIDE)), 'broker', 'main'), str(other.fileno()), str(os.getpid())]
        try:
            with other:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    env={},
                    cwd='/',
                    pass_fds=[other.fileno()],
                    start_new_session=True,
                )
            data, _ = kernel_calls.receive(own.fileno())
        except BaseException:
            own.close()
            raise
        self.can_fork = bool(data and json.loads(data)['can_fork'])
        return own


class Answer:
    """The answer of the broker to one request."""

    def __init__(self, own: socket.socket) -> None:
        self._socket = own

    def __enter__(self) -> 'Answer':
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()

    def read(self) -> tuple[dict[str, Any], list[int]]:
        """Wait for the answer. Raises `SandboxError` if it is an error."""
        if not _wait_for(self._socket.fileno(), ANSWER_SECONDS):
            raise SandboxError('the sandbox could not start: its broker does not answer')
        data, descriptors = kernel_calls.receive(self._socket.fileno())
        answer: dict[str, Any] = json.loads(data) if data else {'error': 'its broker has ended'}
        if error := answer.get('error'):
            msg = f'the sandbox could not start: {error}'
            raise SandboxError(msg)
        return answer, descriptors


broker = BrokerClient()
after_fork(broker.__init__)
