"""Starts the command by forking a process that has imported it already: milliseconds instead of half a second.

What is started is a process of its own all the same, with its own pipes, folder, environment and exit code. How Python
itself starts is not seen here: whoever tests that starts it anew.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

IMPORTED = (
    'habilis.agent.hooks.terminal',
    'habilis.cli.main',
    'habilis.cli.demo.command',
    'habilis.cli.models',
    'habilis.cli.runs.command',
    'habilis.cli.runs.list',
    'habilis.cli.sandbox.command',
    'habilis.cli.run.command',
    'habilis.cli.run.execution',
    'habilis.sandbox.wasm.backend',
    'rich.console',
    'typer._adapters',
)
"""What most commands import sooner or later. None of it starts a thread."""

LARGEST = 60_000
"""Bytes of an order."""

ROOT = Path(__file__).parents[2]


class Nursery:
    """There from the first command to the end of the process that wants them."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._connection: socket.socket | None = None
        self._env: dict[str, str] = {}

    def _close(self, process: 'subprocess.Popen[bytes]') -> None:
        if self._connection is not None:
            self._connection.close()
        process.communicate()

    def run(
        self, arguments: Sequence[str], data: bytes, env: Mapping[str, str], *, seconds: float
    ) -> subprocess.CompletedProcess[bytes] | None:
        """Run a command to its end; None if it has to be started in the usual way."""
        order = json.dumps({'arguments': arguments, 'env': dict(env), 'folder': str(Path.cwd())}).encode()
        with self._one_at_a_time:
            connection = self._connected(env)
            if len(order) > LARGEST or _of_python(env) != self._env:
                return None
            stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
            theirs = [stdin[0], stdout[1], stderr[1]]
            socket.send_fds(connection, [order], theirs)
            for fd in theirs:
                os.close(fd)
            late = threading.Timer(seconds, os.kill, (int(connection.recv(100)), signal.SIGKILL))
            late.start()
            try:
                output, errors = _communicate(data, stdin[1], stdout[0], stderr[0])
                code = int(connection.recv(100))
            finally:
                late.cancel()
        return subprocess.CompletedProcess(arguments, code, output, errors)

    def _connected(self, env: Mapping[str, str]) -> socket.socket:
        if self._connection is None:
            self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._env = _of_python(env)
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, '-m', 'tests.cli.nursery', str(theirs.fileno())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=[theirs.fileno()],
                    env=dict(env),
                    cwd=ROOT,
                    start_new_session=True,
                )
            atexit.register(self._close, process)
        return self._connection


NURSERY = Nursery()


def _of_python(env: Mapping[str, str]) -> dict[str, str]:
    """What Python looks at when it starts, and only then."""
    return {name: value for name, value in env.items() if name.startswith(('PYTHON', 'LC_', 'LANG'))}


def _communicate(data: bytes, stdin: int, stdout: int, stderr: int) -> tuple[bytes, bytes]:
    with open(stdout, 'rb') as output, open(stderr, 'rb') as errors, ThreadPoolExecutor(2) as threads:
        reading = threads.submit(output.read), threads.submit(errors.read)
        with contextlib.suppress(BrokenPipeError), open(stdin, 'wb') as writing:
            writing.write(data)
        return reading[0].result(), reading[1].result()


# In the nursery -------------------------------------------------------------------------------------------------------


def serve(connection: socket.socket) -> bool:
    """Fork a process for each order. True in that process, once it is ready to be the command."""
    for module in IMPORTED:
        importlib.import_module(module)
    gc.freeze()
    while True:
        order, fds, _, _ = socket.recv_fds(connection, LARGEST, 3)
        if not order:  # those who want something are gone
            return False
        if not (pid := os.fork()):
            connection.close()
            _become(json.loads(order), fds)
            return True
        for fd in fds:
            os.close(fd)
        connection.send(str(pid).encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.send(str(code).encode())


def _become(order: Mapping[str, object], fds: Sequence[int]) -> None:
    for standard, fd in enumerate(fds):
        os.dup2(fd, standard)
        os.close(fd)
    os.environ.clear()
    os.environ.update(order['env'])  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownMemberType]
    os.chdir(str(order['folder']))
    sys.argv = ['habilis', *order['arguments']]  # pyright: ignore[reportGeneralTypeIssues]


if __name__ == '__main__' and serve(socket.socket(fileno=int(sys.argv[1]))):
    from habilis.cli.main import main

    main()
