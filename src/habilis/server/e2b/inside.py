"""Runs in the sandbox of a machine: starts commands and kernels, and works on files, as `machine.py` asks.

It is sent as text and run as a cell that never ends, with the standard library and our codec only. Requests come
through a FIFO, one line each: `[number, operation, arguments]`; number 0 wants no reply. What is told to the host is a
list: `['reply', number, code, value]`, where `code` is empty or says what failed; `['out', command, stream, data]`; or
`['end', command, status]`.
All that it does happens inside, so no path leads out of the sandbox.
"""

import contextlib
import errno
import os
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import IO, Any

from habilis.core.codec import decode

Entry = dict[str, Any]

CHUNK = 1 << 15
WINDOW = 1 << 20
"""Bytes of a command's output that the host may not have read yet; then the command waits."""

POLL_SECONDS = 0.2
MAX_ENTRIES = 10_000
_KERNEL = (
    'import sys; sys.path[:] = {path!r}; from habilis.sandbox.guest.__main__ import main; main({{"stdout": {stdout}}})'
)
_CODES = {
    errno.ENOENT: 'not_found',
    errno.ESRCH: 'not_found',
    errno.EEXIST: 'already_exists',
    errno.EACCES: 'permission_denied',
    errno.EPERM: 'permission_denied',
    errno.EROFS: 'permission_denied',
    errno.ENOSPC: 'resource_exhausted',
    errno.EFBIG: 'resource_exhausted',
    errno.EDQUOT: 'resource_exhausted',
}


class CommandProcess:
    """A process of the machine. A thread reads its pipes."""

    def __init__(self, name: int, process: 'subprocess.Popen[bytes]', pipes: dict[str, int], seconds: float | None):
        self.process = process
        self.lock = threading.Lock()
        """Held while something is written to stdin."""

        self._name = name
        self._pipes = pipes
        self._end = None if seconds is None else time.monotonic() + seconds
        self._unread = 0
        self._read = threading.Condition()

    def follow(self, tell: Callable[[list[object]], object]) -> None:
        """Tell the host what the process writes, and how it ends."""
        with selectors.DefaultSelector() as selector:
            for stream, pipe in self._pipes.items():
                os.set_blocking(pipe, False)
                selector.register(pipe, selectors.EVENT_READ, stream)
            while selector.get_map():
                ready = {key.data for key, _ in selector.select(POLL_SECONDS)}
                if not ready and self.process.poll() is not None:
                    break  # a process in the background has the pipes
                self._check_time()
                for stream in [name for name in self._pipes if name in ready]:
                    data = self._some(stream)
                    if data == b'':
                        selector.unregister(self._pipes[stream])
                    if stream == 'lines':  # after what was written before it
                        for other in ('stdout', 'stderr'):
                            while earlier := self._some(other):
                                self._tell(tell, other, earlier)
                    if data:
                        self._tell(tell, stream, data)
        for pipe in self._pipes.values():
            os.close(pipe)
        while self.process.poll() is None:
            self._check_time()
            time.sleep(0.01)
        tell(['end', self._name, self.process.returncode])

    def acknowledge(self, size: int) -> None:
        """The host has read so many bytes."""
        with self._read:
            self._unread -= size
            self._read.notify()

    def kill(self, number: int) -> None:
        """Send a signal to the process and its children."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def _some(self, stream: str) -> bytes | None:
        """What there is to read; None if there is nothing now, and nothing at all at the end."""
        try:
            return os.read(self._pipes[stream], CHUNK)
        except BlockingIOError:
            return None

    def _tell(self, tell: Callable[[list[object]], object], stream: str, data: bytes) -> None:
        with self._read:
            while self._unread >= WINDOW:
                self._read.wait(POLL_SECONDS)
                self._check_time()
            self._unread += len(data)
        tell(['out', self._name, stream, data])

    def _check_time(self) -> None:
        if self._end is not None and time.monotonic() > self._end:
            self._end = None
            self.kill(signal.SIGKILL)


class Machine:
    """Does what the host asks for, each request on a thread of its own."""

    def __init__(self, home: str, tell: Callable[[list[object]], object]) -> None:
        self._home = home
        self._tell = tell
        self._commands: dict[int, CommandProcess] = {}

    def handle(self, number: int, operation: str, arguments: list[object]) -> None:
        """Do what is asked for, and reply."""
        code, value = '', None
        try:
            value = getattr(self, f'do_{operation}')(*arguments)
        except (OSError, ValueError, shutil.Error) as error:
            problem = getattr(error, 'errno', None)
            code = _CODES.get(problem, 'invalid_argument') if isinstance(problem, int) else 'invalid_argument'
            value = f'{getattr(error, "filename", None) or operation}: {getattr(error, "strerror", None) or error}'
        if number:
            self._tell(['reply', number, code, value])

    # Commands ---------------------------------------------------------------------------------------------------------

    def do_start(
        self, name: int, argv: list[str], env: dict[str, str], cwd: str, has_stdin: bool, seconds: float | None
    ) -> int:
        """Start a command; without arguments it is a kernel, whose messages are the stream `lines`."""
        extra: dict[str, int] = {}
        passed = -1
        if not argv:
            extra['stdout'], passed = os.pipe()
            argv = [sys.executable, '-I', '-S', '-B', '-c', _KERNEL.format(path=sys.path, stdout=passed)]
        elif argv[0] == '/bin/bash' and not os.path.exists('/bin/bash'):  # which the SDK takes for granted
            argv = ['/bin/sh', *argv[1:]]
        folder = self._path(cwd)
        try:
            process = subprocess.Popen(
                argv,
                cwd=folder,
                env={**os.environ, 'PWD': folder, **env},  # for `pwd`: a part of the path may be a link
                stdin=subprocess.PIPE if has_stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[passed] if extra else [],
                start_new_session=True,
            )
        except BaseException:
            for pipe in extra.values():
                os.close(pipe)
            raise
        finally:
            if extra:
                os.close(passed)
        assert process.stdout is not None
        assert process.stderr is not None
        pipes = {'lines' if extra else 'stdout': os.dup(process.stdout.fileno()), **extra}
        pipes['stderr'] = os.dup(process.stderr.fileno())
        process.stdout.close()
        process.stderr.close()
        command = self._commands[name] = CommandProcess(name, process, pipes, seconds)
        threading.Thread(target=self._follow, args=(name, command), daemon=True).start()
        return process.pid

    def _follow(self, name: int, command: CommandProcess) -> None:
        command.follow(self._tell)
        del self._commands[name]
        if command.process.stdin is not None:
            with command.lock, contextlib.suppress(BrokenPipeError):  # it has not read all
                command.process.stdin.close()

    def do_input(self, name: int, data: bytes) -> None:
        """Write to the stdin of a command."""
        command = self._command(name)
        with command.lock:
            self._stdin(command).write(data)
            self._stdin(command).flush()

    def do_close_input(self, name: int) -> None:
        """Close the stdin of a command."""
        command = self._command(name)
        with command.lock:
            self._stdin(command).close()

    @staticmethod
    def _stdin(command: CommandProcess) -> IO[bytes]:
        if command.process.stdin is None:
            raise OSError(errno.EINVAL, 'the command was started without stdin')
        return command.process.stdin

    def do_signal(self, name: int, number: int) -> None:
        """Send a signal to a command."""
        self._command(name).kill(number)

    def do_read_output(self, name: int, size: int) -> None:
        """The host has read so much output of a command."""
        if name in self._commands:
            self._commands[name].acknowledge(size)

    def _command(self, name: int) -> CommandProcess:
        if name not in self._commands:
            raise OSError(errno.ESRCH, 'the command has ended')
        return self._commands[name]

    # Files ------------------------------------------------------------------------------------------------------------

    def do_read(self, path: str, offset: int, size: int) -> bytes:
        """Some bytes of a file."""
        with _opened(self._path(path), os.O_RDONLY) as file:
            return os.pread(file, size, offset)

    def do_write(self, path: str, offset: int, data: bytes) -> Entry:
        """Write some bytes of a file; the first ones replace it."""
        path = self._path(path)
        if not offset:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with _opened(path, os.O_WRONLY | os.O_CREAT | (0 if offset else os.O_TRUNC)) as file:
            while data:
                written = os.pwrite(file, data, offset)
                data, offset = data[written:], offset + written
        return self._entry(path)

    def do_stat(self, path: str) -> Entry:
        """Describe a file or folder."""
        return self._entry(self._path(path))

    def do_list(self, path: str, depth: int) -> list[Entry]:
        """Describe what is in a folder, and in those below it up to a depth."""
        found: list[Entry] = []
        left = [(self._path(path), depth)]
        while left:
            folder, depth = left.pop(0)
            for name in sorted(os.listdir(folder)):
                try:
                    found.append(self._entry(os.path.join(folder, name)))
                except FileNotFoundError:
                    continue
                if len(found) >= MAX_ENTRIES:
                    return found
                if depth > 1 and found[-1]['type'] == 'directory' and not found[-1]['target']:
                    left.append((found[-1]['path'], depth - 1))
        return found

    def do_make_dir(self, path: str) -> Entry:
        """Make a folder and those above it."""
        os.makedirs(self._path(path))
        return self._entry(self._path(path))

    def do_move(self, source: str, target: str) -> Entry:
        """Rename a file or folder."""
        source, target = self._path(source), self._path(target)
        os.lstat(source)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.move(source, target)
        return self._entry(target)

    def do_remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        path = self._path(path)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def _path(self, path: str) -> str:
        if path == '~' or path.startswith('~/'):
            path = path[2:]
        return os.path.normpath(os.path.join(self._home, path))

    @staticmethod
    def _entry(path: str) -> Entry:
        info = os.lstat(path)
        target = os.path.realpath(path) if stat.S_ISLNK(info.st_mode) else ''
        if target and os.path.exists(path):
            info = os.stat(path)
        kinds = {stat.S_IFDIR: 'directory', stat.S_IFREG: 'file', stat.S_IFLNK: 'symlink'}
        return {
            'name': os.path.basename(path),
            'path': path,
            'type': kinds.get(stat.S_IFMT(info.st_mode), ''),
            'size': info.st_size,
            'mode': stat.S_IMODE(info.st_mode),
            'permissions': stat.filemode(info.st_mode),
            'changed': info.st_mtime_ns,
            'target': target,
        }


@contextlib.contextmanager
def _opened(path: str, flags: int) -> Generator[int]:
    """An open file. A FIFO, which may wait for ever, or a device is none."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, 'is not a file', path)
        yield descriptor
    finally:
        os.close(descriptor)


def main(inbox: str, home: str, tell: Callable[[list[object]], object]) -> None:
    """Handle the requests of the host until the sandbox ends."""
    machine = Machine(home, tell)
    with open(inbox) as requests:
        tell(['ready'])
        for line in requests:
            request: Any = decode(line.strip())
            threading.Thread(target=machine.handle, args=tuple(request), daemon=True).start()
