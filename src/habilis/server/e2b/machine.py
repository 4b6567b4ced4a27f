"""A machine: a sandbox with commands, files and kernels, all of which `inside.py` works on in it."""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import threading
import time
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any, cast

from habilis.core.codec import CodecError, Json, encode, unpack
from habilis.core.errors import SandboxError
from habilis.core.narrowing import expect
from habilis.sandbox.contract import Backend, Guest, GuestDied, GuestSpec, Interrupted, Mount, Stream
from habilis.sandbox.files.temporary_folders import temporary_folder
from habilis.sandbox.host.guest_messages import parse_message
from habilis.sandbox.host.interpreter import start_guest
from habilis.sandbox.host.workers import WORKERS
from habilis.server.e2b import inside
from habilis.server.e2b.commands import Command, Follower
from habilis.server.e2b.inside import WINDOW
from habilis.server.settings import ServiceSettings

HOME = '/home/user'
INBOX = '/run/machine'
MAX_SECONDS = 24 * 3600
START_SECONDS = 60.0
MAX_PENDING = 200
"""Requests that wait for the machine."""

_CODE = f'{Path(inside.__file__).read_text()}\nmain(inbox, home, tell)\n'
_TOLD = {'name': 'tell', 'parameters': ['event']}
_DONE = '{"ok":null}'


class MachineGone(Exception):
    """The machine has ended."""


class MachineError(Exception):
    """The machine could not do what it was asked for. `code` is one of those of Connect, in lower case."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class HostedMachine:
    """A machine of the service. It ends at its time, or if it was not used for long."""

    kind = 'e2b'

    def __init__(self, backend: Backend, settings: ServiceSettings, owner: str) -> None:
        self.created = time.time()
        self.owner = owner
        self.token = secrets.token_hex(32)
        self.template = ''
        self.metadata: dict[str, str] = {}
        self.commands: dict[int, Command] = {}
        self.cells = 0
        """How many cells are running."""

        self.settings = settings
        self._backend = backend
        self._env: dict[str, str] = {}
        self._root, self._remove_root = temporary_folder()
        self._guest: Guest | None = None
        self._thread: threading.Thread | None = None
        self._loop = asyncio.get_running_loop()
        self._inbox: asyncio.WriteTransport | None = None
        self._reader = -1
        self._numbers = count(1)
        self._pending: dict[int, asyncio.Future[object]] = {}
        self._ready = self._loop.create_future()
        self._stopped = False
        self._death = ''
        self._used = time.monotonic()
        self._ends = self._used

    # The life of a machine --------------------------------------------------------------------------------------------

    async def start(self, *, seconds: float, env: dict[str, str]) -> None:
        """Start the sandbox. Raises `SandboxError`."""
        self._env = {'HOME': HOME, **env}
        self.set_seconds(seconds)
        try:
            mounts = await self._make_folders()
            spec = GuestSpec(limits=self.settings.limits, mounts=mounts)
            self._guest = await start_guest(self._backend, spec)
            self._thread = threading.Thread(target=self._run, args=(self._guest,), name='habilis-machine', daemon=True)
            self._thread.start()
            await asyncio.wait([self._ready], timeout=START_SECONDS)
            if not self._ready.done() or self._stopped:
                msg = f'the machine could not start: {self._death or "it did not answer"}'
                raise SandboxError(msg)
        except BaseException:
            await self.close()
            raise

    async def _make_folders(self) -> tuple[Mount, ...]:
        """The home of the machine, and the FIFO through which it gets its requests."""
        home, inbox = self._root / 'home', self._root / 'inbox'
        home.mkdir()
        inbox.mkdir()
        fifo = inbox / 'requests'
        os.mkfifo(fifo)
        for path, mode in ((home, 0o777), (inbox, 0o755), (fifo, 0o644)):
            path.chmod(mode)  # the user of the sandbox may be another one; `_root` is ours alone
        self._reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)  # so that it can be opened for writing
        writer = os.fdopen(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK), 'wb')
        self._inbox, _ = await self._loop.connect_write_pipe(asyncio.BaseProtocol, writer)
        return (Mount(source=home, target=HOME, writable=True), Mount(source=inbox, target=INBOX))

    def set_seconds(self, seconds: float) -> None:
        """End it so many seconds from now."""
        self._ends = time.monotonic() + min(max(0.0, seconds), MAX_SECONDS)

    @property
    def seconds_left(self) -> float:
        """Seconds until it ends."""
        return max(0.0, self._ends - time.monotonic())

    @property
    def busy(self) -> bool:
        """Whether a request, a cell or a command is running. Kernels wait for cells all the time."""
        return bool(self._pending or self.cells or any(command.argv for command in self.commands.values()))

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._stopped

    def is_expired(self, now: float) -> bool:
        """Whether its time is over, or nobody uses it, or it has ended by itself."""
        if self.busy:
            self._used = now
        return self._stopped or now > self._ends or now - self._used > self.settings.idle_seconds

    async def close(self) -> None:
        """End all that runs in it, and remove its files."""
        self._stop()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 10)
        await WORKERS.submit(self._remove_root)

    def _stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        if self._guest is not None:
            self._guest.interrupt()
        if self._inbox is not None:  # here, as `close` may be cancelled while it waits
            self._inbox.abort()
        if self._reader >= 0:
            os.close(self._reader)
        self._ready.cancel()
        for future in self._pending.values():
            if not future.done():
                future.set_exception(MachineGone())
        for command in self.commands.values():
            command.end(-signal.SIGKILL)

    # Requests ---------------------------------------------------------------------------------------------------------

    async def ask(self, operation: str, *arguments: object) -> object:
        """Have something done in the machine. Raises `MachineError` and `MachineGone`."""
        if self._stopped or self._inbox is None:
            raise MachineGone
        if len(self._pending) >= MAX_PENDING or self._inbox.get_write_buffer_size() > self.settings.body_bytes:
            msg = 'too many requests at once'
            raise MachineError('resource_exhausted', msg)
        number = next(self._numbers)
        future = self._pending[number] = self._loop.create_future()
        self._used = time.monotonic()
        self._send(number, operation, arguments)
        try:
            return await future
        finally:
            del self._pending[number]
            self._used = time.monotonic()

    async def run(
        self,
        argv: list[str],
        *,
        env: dict[str, str] | None = None,
        cwd: str = '',
        tag: str = '',
        stdin: bool = False,
        seconds: float | None = None,
    ) -> Follower:
        """Start a command, and follow it; without arguments it is a kernel."""
        name = next(self._numbers)
        made = Command(name, tuple(argv), env or {}, cwd, tag, self._acknowledge)
        self.commands[name] = made
        follower = made.follow()
        try:
            pid = await self.ask('start', name, argv, {**self._env, **made.env}, cwd, stdin, seconds)
        except (MachineError, MachineGone):
            self.commands.pop(name, None)
            raise
        except BaseException:  # the caller is gone, and the command may run
            follower.close()
            raise
        made.pid = expect(pid, int)
        return follower

    def kill(self, command: Command) -> None:
        """Kill a command, if it still runs."""
        if not self._stopped and command.name in self.commands:
            self._send(0, 'signal', (command.name, int(signal.SIGKILL)))

    def _acknowledge(self, name: int, size: int) -> None:
        if not self._stopped:
            self._send(0, 'read_output', (name, size))

    def _send(self, number: int, operation: str, arguments: tuple[object, ...]) -> None:
        assert self._inbox is not None
        self._inbox.write(f'{encode([number, operation, list(arguments)])}\n'.encode())

    def _take(self, event: Any) -> None:
        """Handle what the machine has told. It is not trusted: anything unexpected ends it."""
        match event:
            case ['ready']:
                if not self._ready.done():
                    self._ready.set_result(None)
            case ['reply', int(number), str(code), value]:
                future = self._pending.get(number)
                if future is not None and not future.done():
                    if code:
                        future.set_exception(MachineError(code, str(value)[:1000]))
                    else:
                        future.set_result(value)
            case ['out', int(name), 'stdout' | 'stderr' | 'lines' as stream, bytes(data)]:
                if (command := self.commands.get(name)) is not None:
                    command.put(stream, data)
                    if command.unread > 2 * WINDOW:
                        self._stop()
            case ['end', int(name), int(status)]:
                if (command := self.commands.pop(name, None)) is not None:
                    command.end(status)
            case _:
                self._stop()

    # On the thread of the guest ---------------------------------------------------------------------------------------

    def _run(self, guest: Guest) -> None:
        variables = {'inbox': f'{INBOX}/requests', 'home': HOME}
        setup = {'tools': [_TOLD], 'variables': variables}
        try:
            self._death = guest.enter(json.dumps({'op': 'run', 'code': _CODE, 'setup': setup}), self)[:300]
        except GuestDied as death:
            self._death = str(death)
        finally:
            guest.close()
        with contextlib.suppress(RuntimeError):  # the server has stopped
            self._loop.call_soon_threadsafe(self._stop)

    def answer(self, message: str) -> str:
        """Take what the machine tells, one at a time."""
        self.check()
        if message[:1] in ('o', 'e', 'l'):  # a warning of Python, or which lines run
            return ''
        try:
            match parse_message(message[1:]) if message[:1] == 'c' else None:
                case ['tell', [[packed], dict()]]:
                    event = unpack(cast('Json', packed))
                case _:
                    raise Interrupted
        except CodecError:
            raise Interrupted from None
        done: Future[None] = Future()

        def take() -> None:
            try:
                self._take(event)
            finally:
                done.set_result(None)

        self._loop.call_soon_threadsafe(take)
        while not done.done() and not self._stopped:
            with contextlib.suppress(TimeoutError):
                done.result(1)
        return _DONE

    def write(self, stream: Stream, data: bytes) -> None:
        """Output of the sandbox itself goes nowhere: all that runs in it is a command."""

    def check(self) -> None:
        """Raise `Interrupted` if the machine must end."""
        if self._stopped:
            raise Interrupted
