"""Starts the command by forking a process that has imported it already: milliseconds instead of seconds.

What is started is a process of its own all the same, with its own pipes or terminal, folder, environment and exit code.
How Python itself starts is not seen here: whoever tests that starts it anew.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

IMPORTED = (
    'genai_prices.data',
    'habilis.agent.hooks.terminal',
    'habilis.cli.commands',
    'habilis.cli.main',
    'habilis.cli.demo.runner',
    'habilis.cli.doctor.checks',
    'habilis.cli.memory.entries',
    'habilis.cli.models',
    'habilis.cli.runs.command',
    'habilis.cli.runs.files',
    'habilis.cli.runs.list',
    'habilis.cli.runs.resume',
    'habilis.cli.sandbox.command',
    'habilis.cli.sandbox.repl',
    'habilis.cli.run.command',
    'habilis.cli.run.execution',
    'habilis.cli.sessions.sessions',
    'habilis.cli.tasks.tasks',
    'habilis.cli.tools.build',
    'habilis.cli.tools.sharing',
    'habilis.cli.tools.speed',
    'habilis.forge.agent_library',
    'habilis.models.connection',
    'habilis.models.engine',
    'habilis.sandbox.wasm.backend',
    'openai.resources.chat.completions',
    'pydantic_ai.models.openai',
    'pydantic_ai.providers.openai',
    'rich.console',
    'typer._adapters',
)
"""What most commands import sooner or later. None of it starts a thread."""

LARGEST = 60_000
"""Bytes of an order."""

ROOT = Path(__file__).parents[2]


class Started:
    """A command that was started, with the methods of `Popen`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.pid = int(connection.recv(100))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired('habilis', timeout or 0)
            self.returncode = int(self._connection.recv(100))
            self._connection.close()
        return self.returncode

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, signal.SIGKILL)


class Nursery:
    """There from the first command to the end of the process that wants them."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._env: dict[str, str] = {}
        self._path = ''

    def run(
        self,
        arguments: Sequence[str],
        data: bytes,
        env: Mapping[str, str],
        *,
        seconds: float,
        folder: Path | None = None,
        program: str = '',
    ) -> subprocess.CompletedProcess[bytes] | None:
        """Run a command to its end; None if it has to be started in the usual way.

        `program`: a file of Python that is run instead of the command.
        """
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        theirs = [stdin[0], stdout[1], stderr[1]]
        try:
            started = self.start(arguments, env, theirs, folder=folder, program=program)
        finally:
            for fd in theirs:
                os.close(fd)
        if started is None:
            for fd in (stdin[1], stdout[0], stderr[0]):
                os.close(fd)
            return None
        late = threading.Timer(seconds, started.kill)
        late.start()
        try:
            output, errors = _communicate(data, stdin[1], stdout[0], stderr[0], started, with_group=bool(program))
            code = started.wait()
        finally:
            late.cancel()
        return subprocess.CompletedProcess(arguments, code, output, errors)

    def start(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        fds: Sequence[int],
        *,
        terminal: bool = False,
        folder: Path | None = None,
        program: str = '',
    ) -> Started | None:
        """Start a command with these standard streams; with `terminal`, they are its controlling terminal."""
        order = {'arguments': arguments, 'env': dict(env), 'folder': str(folder or Path.cwd()), 'terminal': terminal}
        text = json.dumps({**order, 'program': program}).encode()
        path = self.path(env)
        if len(text) > LARGEST or _of_python(env) != self._env:
            return None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(path)
        socket.send_fds(connection, [text], fds)
        return Started(connection)

    def path(self, env: Mapping[str, str]) -> str:
        """The socket that takes orders. With the first use, the nursery starts, in this environment."""
        with self._one_at_a_time:
            if not self._path:
                folder = tempfile.mkdtemp(prefix='nursery-')
                path = f'{folder}/socket'
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
                    listening.bind(path)
                    listening.listen(20)
                    process = subprocess.Popen(
                        [sys.executable, '-m', 'tests.cli.nursery', str(listening.fileno())],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        pass_fds=[listening.fileno()],
                        env=dict(env),
                        cwd=ROOT,
                        start_new_session=True,
                    )
                atexit.register(shutil.rmtree, folder)
                atexit.register(process.communicate)  # closes its stdin, which ends it
                self._env, self._path = _of_python(env), path
        return self._path


NURSERY = Nursery()


def _of_python(env: Mapping[str, str]) -> dict[str, str]:
    """What Python looks at when it starts, and only then."""
    return {name: value for name, value in env.items() if name.startswith(('PYTHON', 'LC_', 'LANG'))}


def _communicate(
    data: bytes, stdin: int, stdout: int, stderr: int, started: Started, *, with_group: bool
) -> tuple[bytes, bytes]:
    """What a command writes. With its group, what it has left running ends with it, and cannot keep the pipes open."""
    with open(stdout, 'rb') as output, open(stderr, 'rb') as errors, ThreadPoolExecutor(2) as threads:
        reading = threads.submit(output.read), threads.submit(errors.read)
        with contextlib.suppress(BrokenPipeError), open(stdin, 'wb') as writing:
            writing.write(data)
        if with_group:
            started.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
        return reading[0].result(), reading[1].result()


# In the nursery -------------------------------------------------------------------------------------------------------


def serve(listening: socket.socket) -> bool:
    """Fork a process for each order. True in that process, once it is ready to be the command."""
    for module in IMPORTED:
        importlib.import_module(module)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for a command
    while True:
        if sys.stdin in select.select([sys.stdin, listening], [], [])[0]:  # those who want something are gone
            return False
        connection = listening.accept()[0]
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            return _handle(connection)
        connection.close()


def _handle(connection: socket.socket) -> bool:
    """Start one command, and say how it ended. True in its process."""
    order, fds, _, _ = socket.recv_fds(connection, LARGEST, 3)
    if not (pid := os.fork()):
        connection.close()
        _become(json.loads(order), fds)
        return True
    for fd in fds:
        os.close(fd)
    connection.send(str(pid).encode())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(BrokenPipeError):  # nobody wants to know
        connection.send(str(code).encode())
    os._exit(0)


def _become(order: Mapping[str, object], fds: Sequence[int]) -> None:
    for standard, fd in enumerate(fds):
        os.dup2(fd, standard)
        os.close(fd)
    if order['terminal'] or order.get('program'):
        os.setsid()
    if order['terminal']:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that ^C typed there becomes a signal
        cast('io.TextIOWrapper', sys.stdout).reconfigure(line_buffering=True)
    os.environ.clear()
    os.environ.update(order['env'])  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownMemberType]
    os.chdir(str(order['folder']))
    sys.argv = [order.get('program') or 'habilis', *order['arguments']]  # pyright: ignore[reportGeneralTypeIssues, reportAttributeAccessIssue]


if __name__ == '__main__' and serve(socket.socket(fileno=int(sys.argv[1]))):
    if sys.argv[0] == 'habilis':
        from habilis.cli.main import main

        main()
    else:
        sys.path.remove(str(ROOT))  # a program sees what is installed
        runpy.run_path(sys.argv[0], run_name='__main__')
