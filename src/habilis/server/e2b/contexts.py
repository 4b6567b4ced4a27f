"""Contexts of the code interpreter: kernels in a machine, each the guest of a sandbox whose session is here."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from habilis.core.codec import Json
from habilis.core.errors import SandboxError
from habilis.sandbox.contract import Cell, Guest, GuestDied, GuestSpec, HostSide, Interrupted, Stream, python_of
from habilis.sandbox.host.interpreter import Interpreter
from habilis.sandbox.host.line_guest import MAX_LINE, LineGuest
from habilis.sandbox.options import Packages, SandboxOptions
from habilis.sandbox.session import Sandbox
from habilis.server.e2b.commands import Ended, Follower
from habilis.server.e2b.machine import HOME, HostedMachine, MachineError, MachineGone

T = TypeVar('T')
MAX_CONTEXTS = 20
KEEPALIVE_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True)
class _ContextOptions(SandboxOptions):
    cwd: str

    def setup(self, *, with_variables: bool = True) -> dict[str, Json]:
        return {**super().setup(with_variables=with_variables), 'cwd': self.cwd}


class CodeContext:
    """A Python interpreter in a machine. Its cells run one at a time."""

    def __init__(self, machine: HostedMachine, cwd: str) -> None:
        self.cwd = cwd
        self.cells = 0
        self._machine = machine
        self._sandbox = self._make()

    def _make(self) -> Sandbox:
        limits = replace(self._machine.settings.limits, cpu=1)
        kernels = _Kernels(self._machine, self.cwd)
        packages = Packages(python=partial(python_of, kernels))
        options = _ContextOptions(limits=limits, functions={}, packages=packages, cwd=self.cwd)
        return Sandbox(Interpreter(kernels, options), options)

    async def run(self, code: str, env: dict[str, str]) -> AsyncGenerator[tuple[Stream, str] | Cell | None]:
        """Run a cell: its output as it comes, None where there is none for long, and then its result.

        The cell is cancelled if nobody waits for it any more. Raises `SandboxError` if the kernel cannot start.
        """
        self.cells += 1
        self._machine.cells += 1
        try:
            if env:
                await self._sandbox.run(f"__import__('os').environ.update({env!r})")
            async with aclosing(self._run(code)) as told:
                async for item in told:
                    yield item
        finally:
            self._machine.cells -= 1

    async def _run(self, code: str) -> AsyncGenerator[tuple[Stream, str] | Cell | None]:
        output: asyncio.Queue[tuple[Stream, str] | None] = asyncio.Queue()
        cell = asyncio.create_task(
            self._sandbox.run(code, on_output=lambda stream, text: output.put_nowait((stream, text)))
        )
        cell.add_done_callback(lambda _: output.put_nowait(None))
        try:
            while True:
                try:
                    async with asyncio.timeout(KEEPALIVE_SECONDS):
                        written = await output.get()
                except TimeoutError:
                    yield None
                    continue
                if written is None:
                    break
                yield written
            yield await cell
        finally:
            cell.cancel()

    async def restart(self) -> None:
        """Continue without variables."""
        before, self._sandbox, self.cells = self._sandbox, self._make(), 0
        await before.close()

    async def close(self) -> None:
        """End the kernel."""
        await self._sandbox.close()


class Contexts:
    """The contexts of a machine by id. The one without a name is made when it is first used."""

    def __init__(self, machine: HostedMachine) -> None:
        self._machine = machine
        self._contexts: dict[str, CodeContext] = {}
        self._default = ''

    def all(self) -> list[tuple[str, CodeContext]]:
        """All contexts."""
        return list(self._contexts.items())

    def make(self, cwd: str) -> tuple[str, CodeContext]:
        """A new context."""
        if len(self._contexts) >= MAX_CONTEXTS:
            msg = f'a sandbox may have {MAX_CONTEXTS} contexts; remove one'
            raise MachineError('resource_exhausted', msg)
        name = secrets.token_hex(8)
        self._contexts[name] = CodeContext(self._machine, cwd)
        return name, self._contexts[name]

    def find(self, name: str) -> CodeContext:
        """The context with this id, or the default one."""
        if not name:
            if self._default not in self._contexts:
                self._default, _ = self.make(HOME)
            name = self._default
        if name not in self._contexts:
            msg = f'Context {name[:50]} not found'
            raise MachineError('not_found', msg)
        return self._contexts[name]

    async def remove(self, name: str) -> None:
        """End a context."""
        await self.find(name or 'of no name').close()
        del self._contexts[name]


class _Kernels:
    """The backend of contexts: starts kernels in a machine."""

    def __init__(self, machine: HostedMachine, cwd: str) -> None:
        self._machine = machine
        self._cwd = cwd
        self._loop = asyncio.get_running_loop()
        self.isolation = 'a process in a machine'

    def start(self, spec: GuestSpec) -> Guest:
        """Start a kernel."""
        try:
            follower = asyncio.run_coroutine_threadsafe(
                self._machine.run([], cwd=self._cwd, stdin=True), self._loop
            ).result()
        except (MachineError, MachineGone) as error:
            msg = f'the kernel could not start: {error}'
            raise SandboxError(msg) from error
        return _Kernel(self._machine, follower, self._loop)


class _Kernel(LineGuest):
    """A kernel in a machine, as a guest."""

    def __init__(self, machine: HostedMachine, follower: Follower, loop: asyncio.AbstractEventLoop) -> None:
        self._machine = machine
        self._follower = follower
        self._loop = loop
        self._line = bytearray()

    def enter(self, message: str, host: HostSide) -> str:
        """Send a request to the kernel, and reply to its messages until it answers."""
        try:
            return self._exchange(message, host)
        except Interrupted:
            self.close()
            raise GuestDied('cancelled', 'interrupted') from None

    def interrupt(self) -> None:
        """Kill the kernel."""
        self._loop.call_soon_threadsafe(lambda: self._machine.kill(self._follower.command))

    def close(self) -> None:
        """Kill the kernel, and no longer follow it."""
        self.interrupt()
        self._loop.call_soon_threadsafe(self._follower.close)

    def _write(self, line: bytes) -> None:
        try:
            self._wait(self._machine.ask('input', self._follower.command.name, line))
        except (MachineError, MachineGone):
            raise self._death(None) from None

    def _next_line(self, host: HostSide) -> bytes:
        searched = 0
        while (end := self._line.find(b'\n', searched)) < 0:
            searched = len(self._line)
            told = self._wait(self._follower.next())
            if isinstance(told, Ended):
                raise self._death(told.status)
            stream, data = told
            if stream == 'lines':
                self._line += data
                if len(self._line) > MAX_LINE:
                    self.interrupt()
                    raise GuestDied('broken', 'the kernel sent a message that is too long')
            else:
                host.write(stream, data)
                host.check()
        line = bytes(self._line[:end])
        del self._line[: end + 1]
        return line

    def _death(self, status: int | None) -> GuestDied:
        self.close()
        if status is not None and status >= 0:
            return GuestDied('exit', f'the code ended the interpreter with exit code {status}')
        return GuestDied('broken', 'the interpreter was killed')

    def _wait(self, awaited: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(awaited, self._loop).result()
