"""`Sandbox`, an isolated Python interpreter with variables, limits, tools and files; `SyncSandbox`, without `await`."""

import asyncio
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Self, TypeVar, Unpack

from habilis.core.background_loop import run_blocking
from habilis.core.codec import Json
from habilis.core.errors import WorkspaceError
from habilis.sandbox import snapshot
from habilis.sandbox.arguments import check, check_cell
from habilis.sandbox.backends import backend
from habilis.sandbox.code_rules import CodeRules
from habilis.sandbox.contract import Cell, Variable, python_of, why_no_processes
from habilis.sandbox.files.access import FileAccess
from habilis.sandbox.host import results
from habilis.sandbox.host.cell_host import CellHost, OnOutput
from habilis.sandbox.host.functions import AnyFunction, HostFunction, host_functions
from habilis.sandbox.host.interpreter import GuestFailed, Interpreter
from habilis.sandbox.host.turns import ExclusiveUse
from habilis.sandbox.host.workers import WORKERS
from habilis.sandbox.options import (
    SandboxOptions,
    SandboxSettings,
    SiblingFiles,
    backend_settings,
    choose_backend,
    make_options,
    package_text,
)
from habilis.sandbox.snapshot import Snapshot

T = TypeVar('T')


class Sandbox(FileAccess):
    """One interpreter. Create it with `create`; use it as an async context manager, or `close` it.

    Cells run one at a time, in the order of the calls. Tasks may share a sandbox, and event loops use it in turn.
    """

    def __init__(self, interpreter: Interpreter, options: SandboxOptions) -> None:
        """Internal: use `create`, `restore` or `fork`."""
        self._interpreter = interpreter
        super().__init__(options)
        self._turns = ExclusiveUse()
        self._installing = ExclusiveUse()
        self._saver: asyncio.Task[None] | None = None
        self._failure: GuestFailed | None = None
        self.code_rules: CodeRules | None = options.code_rules
        """Checks for later cells; may be changed at any time."""

    # Create and close -------------------------------------------------------------------------------------------------

    @classmethod
    async def create(cls, backend_name: str = 'auto', /, **settings: Unpack[SandboxSettings]) -> Self:
        """Create a sandbox.

        Args:
            backend_name: the backend; `wasm` needs nothing else and starts in milliseconds, `process` runs native code,
                and `auto` is `process` if the packages need it, else `wasm`.
            limits: limits of each cell.
            tools: functions of the host that code inside may call, `def` or `async def`.
            variables: plain data to start with.
            workspace: host folder to mount at `/workspace`, the current folder inside; `True` for a temporary one.
            read_only: mount the workspace read-only. With a text, code can change no file of the workspace and the
                mounts, and gets the text as advice if it tries; the host can change them.
            protect: keep `.git/config`, git hooks and the start files of shells and editors as they are, in a shared
                workspace and writable mounts: changes are undone after each cell.
            mounts: more host folders: a mapping of paths inside to folders, read-only; or a list of `Mount`.
            env: environment variables; nothing else of the host's environment is inside.
            packages: packages to install inside: requirements (`'attrs==25.3'`), wheels or folders.
            network: allow connections, made by the host: `True` for any public host, or hosts by name.
            code_rules: checks on the code, for tidiness; see `CodeRules`.
            input: answers `input()`: a function of the prompt, or a list of lines.
            checkpoints: save the variables after each cell, to restore them after a cell was stopped by force.
            allow_weak: for `process`: run even where the system offers no isolation.
            image: for `docker`: the image.
            url: for `remote`: the address of the server.
            key: for `remote`: the key for it.
        """
        check('the backend', backend_name, str, 'a name, such as "wasm"')
        own = backend_settings(settings)
        maker = backend(await choose_backend(settings) if backend_name == 'auto' else backend_name, **own)
        options = await make_options(settings, lambda: python_of(maker))
        return await cls(Interpreter(maker, options), options)._started()

    @classmethod
    async def restore(cls, data: bytes, backend_name: str = 'auto', /, **settings: Unpack[SandboxSettings]) -> Self:
        """Create a sandbox with the variables of a snapshot. Takes the settings of `create`; pass the same tools."""
        checkpoint = snapshot.from_bytes(data)
        name = await choose_backend(settings, checkpoint.packages) if backend_name == 'auto' else backend_name
        made = await cls.create(name, **settings)
        try:
            await made._add_packages(checkpoint.packages, replaces=False)
            await made._interpreter.load(checkpoint, made._quiet_host)
        except GuestFailed as failure:
            await made.close()
            raise snapshot.not_restored(failure) from failure
        except BaseException:
            await made.close()
            raise
        return made

    @staticmethod
    def create_sync(backend_name: str = 'auto', /, **settings: Unpack[SandboxSettings]) -> 'SyncSandbox':
        """Create a sandbox for code without `await`. Takes the settings of `create`."""
        return SyncSandbox.create(backend_name, **settings)

    async def fork(self) -> 'Sandbox':
        """A new sandbox with the same variables and settings. Both share the workspace."""
        async with self._turns.next():
            options = self._options.shared()
            interpreter = await self._interpreter.fork(options)
            if interpreter is None:
                await self._wake()
                checkpoint = await self._interpreter.current(self._quiet_host)
                interpreter = Interpreter(self._interpreter.backend, options, checkpoint)
        twin = Sandbox(interpreter, options)
        twin.code_rules = self.code_rules
        try:
            async with twin._turns.next():
                await twin._wake()
        except BaseException:
            await twin.close()
            raise
        return twin

    async def sibling(self, *, files: SiblingFiles = 'shared') -> 'Sandbox':
        """A new sandbox with the same settings and without variables. Unlike `fork`, a tool may call it.

        Both share the workspace, or the new one can only read it (`read_only`), or may change it although code of this
        one may not (`writable`), or it gets a temporary one of its `own`.
        """
        options = self._options.of_sibling(files)
        made = Sandbox(Interpreter(self._interpreter.backend, options), options)
        made.code_rules = self.code_rules
        return await made._started()

    async def _started(self) -> Self:
        try:
            await self._interpreter.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def snapshot(self) -> Snapshot:
        """The variables as bytes, for `restore` in any process. `.lost` names those that could not be saved."""
        async with self._turns.next():
            await self._wake()
            checkpoint = await self._interpreter.current(self._quiet_host)
            return snapshot.to_bytes(replace(checkpoint, packages=self._options.packages.pins))

    async def load_snapshot(self, data: bytes) -> None:
        """Replace the variables by those of a snapshot."""
        checkpoint = snapshot.from_bytes(data)
        await self._add_packages(checkpoint.packages, replaces=False)
        async with self._turns.next():
            self._failure, self._interpreter.checkpoint = None, checkpoint
            await self._interpreter.roll_back()
            try:
                await self._wake()
            except GuestFailed as failure:
                raise snapshot.not_restored(failure) from failure

    async def install(self, *packages: str | os.PathLike[str]) -> None:
        """Add packages: requirements, wheels or folders, as in `create`. The variables stay.

        The interpreter is replaced, so what a snapshot does not hold is reset: imported modules, environment, folder.
        Raises `PackageError` if a package cannot be installed, and `SandboxError` if a variable cannot be saved.
        """
        await self._add_packages([package_text(package) for package in packages], replaces=True)

    async def close(self) -> None:
        """Stop the running cell and free all resources, even if the caller is cancelled. May be called twice."""
        if self._turns.closing is None:
            self._turns.closing = asyncio.create_task(self._free(self._turns.lock))
            self._interpreter.interrupt()
        await asyncio.shield(self._turns.closing)

    async def _free(self, lock: asyncio.Lock) -> None:
        async with lock:
            await self._interpreter.close()
            if self._options.workspace is not None:
                await WORKERS.submit(self._options.workspace.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    # Run cells --------------------------------------------------------------------------------------------------------

    async def run(
        self,
        code: str,
        *,
        seconds: float | None = None,
        on_output: OnOutput | None = None,
        tools: Iterable[AnyFunction | HostFunction] | None = None,
        describe: bool = False,
    ) -> Cell:
        """Run code; its variables stay. Errors of the code are in the `Cell`; only errors of the sandbox are raised.

        Args:
            code: Python. The value of the last expression becomes `Cell.value`; `await` works at top level.
            seconds: a shorter time limit for this cell.
            on_output: called on the event loop with `'stdout'` or `'stderr'` and text, while the cell runs.
            tools: offer these from now on, as `set_tools` does; for several users of one sandbox.
            describe: fetch the answer of the next `describe_variables` with the cell, which saves a round trip.
        """
        check_cell(code, self.code_rules, seconds, on_output)
        functions = None if tools is None else host_functions(tools)
        limit = min(self._options.limits.seconds, seconds or math.inf)
        async with self._turns.next():
            try:
                await self._wake()
            except GuestFailed as failure:  # because of an earlier cell; this one has not run
                return results.cell_of_dead_guest(self._make_host(limit), failure.kind, failure, '', 0)
            if functions is not None:
                await self._offer(functions)
            folders = self._options.writable_folders
            before = await WORKERS.submit(lambda: [(folder, folder.scan()) for folder in folders]) if folders else []
            self._turns.check_open()
            host = self._make_host(limit, on_output)
            cell = await self._interpreter.run(code, self.code_rules, host, describe=describe)
            if self._interpreter.unsaved:
                self._save_soon()
            if not folders:
                return cell
            files = await WORKERS.submit(lambda: [change for one, states in before for change in one.changes(states)])
            return replace(cell, files=tuple(files)) if files else cell

    def cancel(self) -> bool:
        """Stop the running cell; its error kind is `cancelled`. False if none is running. Thread-safe."""
        return self._interpreter.cancel()

    # Variables --------------------------------------------------------------------------------------------------------

    async def set_variables(self, variables: Mapping[str, object]) -> None:
        """Set variables to plain data."""
        packed = results.pack_variables(variables)
        async with self._turns.next():
            await self._wake()
            await self._ask({'op': 'set', 'values': packed}, dict)
            self._interpreter.unsaved = True

    async def get_variables(self, *names: str) -> dict[str, object]:
        """The values of these variables, or of all that are plain data. An unknown name is an error."""
        for name in names:
            check('the name of a variable', name, str, 'text')
        async with self._turns.next():
            await self._wake()
            request: dict[str, Json] = {'op': 'get', 'names': list(names) if names else None}
            return await self._ask(request, lambda answer: results.parse_variables(answer, names))

    async def describe_variables(self) -> dict[str, Variable]:
        """The variables by name, with type and size; without modules and tools."""
        async with self._turns.next():
            await self._wake()
            if (known := self._interpreter.described) is not None:
                return dict(known)
            return await self._ask({'op': 'names'}, results.parse_descriptions)

    async def set_tools(self, tools: Iterable[AnyFunction | HostFunction]) -> None:
        """Replace the tools for later cells."""
        functions = host_functions(tools)
        async with self._turns.next():
            await self._wake()
            await self._offer(functions)

    async def do_work(self, work: dict[str, Json], seconds: float) -> Json:
        """Have the guest run a command, while no cell runs; for `tools/toolsets/shell.py`."""
        check('work', work, dict, 'a dict with a command')
        async with self._turns.next():
            await self._wake()
            answer = await self._ask({'op': 'work', 'work': work}, dict, seconds)
            if undone := self._interpreter.take_undone():
                raise WorkspaceError(results.describe_undone(undone))
            return answer

    @property
    def lost(self) -> tuple[str, ...]:
        """Variables that could not be saved, and so were lost at the last restore."""
        checkpoint = self._interpreter.checkpoint
        return checkpoint.lost if checkpoint else ()

    @property
    def has_processes(self) -> bool:
        """Whether code inside can start processes."""
        return not self.why_no_processes

    @property
    def why_no_processes(self) -> str:
        """Why code inside cannot start processes, and what to do; empty if it can."""
        return why_no_processes(self._interpreter.backend)

    @property
    def isolation(self) -> str:
        """How the code is isolated, in one line."""
        return self._interpreter.backend.isolation

    @property
    def busy(self) -> bool:
        """Whether a request is running."""
        return self._turns.busy

    @property
    def last_used(self) -> float:
        """When it last started or ended a request (`time.monotonic`)."""
        return self._turns.last_used

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._turns.closed

    # Internals --------------------------------------------------------------------------------------------------------

    def _make_host(self, seconds: float, on_output: OnOutput | None = None) -> CellHost:
        with self._turns.called_from_inside():  # `CellHost` copies the context for the tools
            return CellHost(
                tools=self._options.functions,
                limits=self._options.limits,
                seconds=seconds,
                loop=asyncio.get_running_loop(),
                on_output=on_output,
                answer_input=self._options.answer_input,
                network=self._options.network,
            )

    def _quiet_host(self, seconds: float) -> CellHost:
        """The host of requests that are not cells. Code that runs during them has no tools: no `Cell` has its calls."""
        return CellHost(tools={}, limits=self._options.limits, seconds=seconds, loop=asyncio.get_running_loop())

    async def _ask(
        self, request: dict[str, Json], read: Callable[[dict[str, Json]], T], seconds: float | None = None
    ) -> T:
        """Send a request that is not a cell."""
        limit = self._options.limits.seconds if seconds is None else seconds
        return await self._interpreter.request(request, self._quiet_host(limit), limit, read)

    async def _wake(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        await self._interpreter.wake(self._quiet_host)

    async def _offer(self, functions: dict[str, HostFunction]) -> None:
        if functions == self._options.functions:
            return
        self._options.functions.clear()
        self._options.functions.update(functions)
        if not self._interpreter.is_fresh:  # else its first request has them
            await self._ask({'op': 'tools', 'tools': [tool.describe() for tool in functions.values()]}, dict)

    async def _add_packages(self, packages: Iterable[str], *, replaces: bool) -> None:
        """Download packages while cells run, then continue in an interpreter that has them."""
        async with self._installing.next():
            added = await self._options.packages.add(packages, replaces=replaces)
            if added == self._options.packages:
                return
            async with self._turns.next():
                await self._wake()
                options, before = self._options.with_packages(added), self._interpreter
                self._interpreter = await before.with_options(options, self._quiet_host)
                self._options = options
                await before.close()

    def _save_soon(self) -> None:
        """Save the variables in the background; the next cell waits for it."""
        if self._options.checkpoints and (self._saver is None or self._saver.done()):
            self._saver = asyncio.get_running_loop().create_task(self._save_when_free())

    async def _save_when_free(self) -> None:
        async with self._turns.lock:
            if self._interpreter.unsaved and self._interpreter.alive and not self._turns.closed:
                try:
                    await self._interpreter.current(self._quiet_host)
                except GuestFailed as failure:
                    self._failure = failure  # raised by the next request


class SyncSandbox:
    """`Sandbox` for code without `await`. Created by `Sandbox.create_sync`; a context manager."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        """The asynchronous sandbox. It belongs to the background event loop."""

    @classmethod
    def create(cls, backend_name: str = 'auto', /, **settings: Unpack[SandboxSettings]) -> Self:
        """See `Sandbox.create`."""
        return cls(run_blocking(Sandbox.create(backend_name, **settings)))

    @classmethod
    def restore(cls, data: bytes, backend_name: str = 'auto', /, **settings: Unpack[SandboxSettings]) -> Self:
        """See `Sandbox.restore`."""
        return cls(run_blocking(Sandbox.restore(data, backend_name, **settings)))

    def run(self, code: str, *, seconds: float | None = None, on_output: OnOutput | None = None) -> Cell:
        """See `Sandbox.run`."""
        return run_blocking(self.sandbox.run(code, seconds=seconds, on_output=on_output))

    def install(self, *packages: str | os.PathLike[str]) -> None:
        """See `Sandbox.install`."""
        run_blocking(self.sandbox.install(*packages))

    def fork(self) -> 'SyncSandbox':
        """See `Sandbox.fork`."""
        return SyncSandbox(run_blocking(self.sandbox.fork()))

    def snapshot(self) -> Snapshot:
        """See `Sandbox.snapshot`."""
        return run_blocking(self.sandbox.snapshot())

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """See `Sandbox.set_variables`."""
        run_blocking(self.sandbox.set_variables(variables))

    def get_variables(self, *names: str) -> dict[str, object]:
        """See `Sandbox.get_variables`."""
        return run_blocking(self.sandbox.get_variables(*names))

    def upload(self, path: str, data: bytes | str) -> None:
        """See `Sandbox.upload`."""
        run_blocking(self.sandbox.upload(path, data))

    def download(self, path: str) -> bytes:
        """See `Sandbox.download`."""
        return run_blocking(self.sandbox.download(path))

    def cancel(self) -> bool:
        """See `Sandbox.cancel`."""
        return self.sandbox.cancel()

    def close(self) -> None:
        """See `Sandbox.close`."""
        run_blocking(self.sandbox.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
