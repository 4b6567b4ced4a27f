"""`Sandbox`: a Python interpreter that is kept apart, with its variables, limits, tools and files."""

import asyncio
import contextvars
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, cast

from habilis.core.codec import CodecError, Json, dump, parse
from habilis.core.errors import SandboxClosed, SandboxError, SnapshotError
from habilis.sandbox import answers, snapshot
from habilis.sandbox.backends import backend
from habilis.sandbox.cellhost import CellHost, OnOutput
from habilis.sandbox.contract import ROLLED_BACK, Backend, Cell, Guest, GuestDied, GuestSpec
from habilis.sandbox.options import Options, Settings, make_options
from habilis.sandbox.policy import Policy
from habilis.sandbox.snapshot import Checkpoint, Snapshot
from habilis.sandbox.workers import WORKERS, Interruptible, Job, stop_at_exit
from habilis.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from habilis.sandbox.sync import SyncSandbox

GRACE = 1.0
"""Seconds after its limit in which a cell must be gone, before its thread is left behind."""

SAVE_SECONDS = 5.0
"""So long may the variables take to be saved or loaded; as long as a cell, if that is longer."""

T = TypeVar('T')
_HALF_PAIR = re.compile('[\ud800-\udfff]')
_inside: contextvars.ContextVar[frozenset[int]] = contextvars.ContextVar('_inside', default=frozenset())


class Sandbox(Interruptible):
    """One interpreter. Make it with `create`; use it as an async context manager, or `close` it.

    Cells run one after another in the order of the calls. Tasks may share a sandbox.
    """

    def __init__(self, maker: Backend, options: Options, checkpoint: Checkpoint | None = None) -> None:
        """Not for users: `create`, `restore` and `fork` also start the interpreter."""
        self._backend = maker
        self._options = options
        self._checkpoint = checkpoint
        self._unsaved = False
        self._guest: Guest | None = None
        self._host: CellHost | None = None
        self._fresh = True
        self._lock = asyncio.Lock()
        self._saver: asyncio.Task[None] | None = None
        self._broke: _Broke | None = None
        self._closed = False
        self.policy: Policy | None = options.policy
        """Checks for the cells to come; may be changed at any time."""

        self.last_used = time.monotonic()

    # Making and ending ------------------------------------------------------------------------------------------------

    @classmethod
    async def create(cls, backend_name: str = 'wasm', /, **settings: Unpack[Settings]) -> Self:
        """A new sandbox.

        Args:
            backend_name: which kind; `wasm` needs nothing and starts in milliseconds.
            limits: bounds for each cell.
            tools: functions of the host that code inside may call, `def` or `async def`.
            variables: plain data to start with.
            workspace: host folder to mount at `/workspace`, the current folder inside; `True` for a temporary one.
            read_only: mount the workspace read-only.
            mounts: more host folders by their path inside, read-only.
            env: environment variables; nothing of the host's environment is inside otherwise.
            packages: pure-Python packages to have inside: requirements (`'attrs==25.3'`), wheels or folders.
            network: allow connections, made by the host: `True` for any, or hosts by name (`['*.example.org']`).
            policy: checks on the code, for tidiness; see `Policy`.
            input: answers `input()`: a function of the prompt, or the lines to give.
            checkpoints: keep what is needed to bring the variables back after a cell was stopped by force.
        """
        maker = backend(backend_name)
        made = cls(maker, await make_options(settings))
        try:
            await made._start()
        except BaseException:
            await made.close()
            raise
        return made

    @classmethod
    async def restore(cls, data: bytes, backend_name: str = 'wasm', /, **settings: Unpack[Settings]) -> Self:
        """A new sandbox with the variables of a snapshot. Takes the settings of `create`; give it the same tools."""
        checkpoint = snapshot.from_bytes(data)
        made = await cls.create(backend_name, **settings)
        try:
            await made._load(checkpoint)
        except BaseException:
            await made.close()
            raise
        return made

    @staticmethod
    def create_sync(backend_name: str = 'wasm', /, **settings: Unpack[Settings]) -> 'SyncSandbox':
        """The same for scripts and notebooks without `await`. Takes the settings of `create`."""
        from habilis.sandbox.sync import SyncSandbox  # it needs this module

        return SyncSandbox.create(backend_name, **settings)

    async def _start(self) -> None:
        self._guest = await WORKERS.submit(lambda: self._backend.start(self._spec()))
        stop_at_exit(self)

    async def fork(self) -> 'Sandbox':
        """A second sandbox with the same variables and settings, separate from now on. They share the workspace."""
        async with self._turn():
            await self._wake()
            twin = Sandbox(self._backend, self._options.shared(), await self._current())
        twin.policy = self.policy
        try:
            async with twin._lock:
                await twin._wake()
        except BaseException:
            await twin.close()
            raise
        return twin

    async def snapshot(self) -> Snapshot:
        """The variables as bytes, for `restore` here or in another process. `.lost` names what could not be saved."""
        async with self._turn():
            await self._wake()
            return snapshot.to_bytes(await self._current())

    async def close(self) -> None:
        """Stop what runs and free everything. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self.cancel()
        if self._saver is not None:
            self._saver.cancel()
        async with self._lock:
            guest, self._guest = self._guest, None
            if guest is not None:
                await WORKERS.submit(guest.close)
            self._options.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Running ----------------------------------------------------------------------------------------------------------

    async def run(self, code: str, *, seconds: float | None = None, on_output: OnOutput | None = None) -> Cell:
        """Run code; its variables stay. Errors of the code are in the `Cell`; only errors of the sandbox are raised.

        Args:
            code: Python. The value of the last expression becomes `Cell.value`; `await` works at top level.
            seconds: a shorter time limit for this cell.
            on_output: called on the event loop with `'stdout'` or `'stderr'` and text, while the cell runs.
        """
        if seconds is not None and not seconds > 0:
            msg = f'seconds must be more than zero, not {seconds!r}'
            raise ValueError(msg)
        limit = min(self._options.limits.seconds, seconds or math.inf)
        async with self._turn():
            try:
                await self._wake()
            except _Broke as broke:  # by what an earlier cell left behind; this one has not run
                return answers.death(self._make_host(limit), 'broken', broke, limit)
            before = self._options.workspace.scan() if self._options.workspace else None
            host = self._make_host(limit, on_output)
            self._host = host
            self._cells += 1
            cell = await self._run(code, host, limit)
            if before is not None and self._options.workspace:
                cell = replace(cell, files=self._options.workspace.changes(before))
            return cell

    async def _run(self, code: str, host: CellHost, limit: float) -> Cell:
        request: dict[str, Json] = {'op': 'run', 'code': code}
        if self.policy is not None:
            request['policy'] = cast('Json', self.policy.to_json())
        plain = self.policy is None and not self._fresh and not _HALF_PAIR.search(code)
        died = True
        try:
            answer = await self._enter('r' + code if plain else request, host, limit)
            cell = answers.cell(answer, host)
            self._remember(answer)
            died = False
        except GuestDied as death:
            cell = answers.death(host, host.ended or death.kind, death, limit)
        except CodecError as error:
            cell = answers.death(host, 'broken', error, limit)
        finally:
            self._host = None
            host.close()
        if died or (cell.error is not None and cell.error.kind in ROLLED_BACK):
            await self._roll_back()
            return answers.rolled_back(cell, self.lost, kept=self._options.checkpoints)
        if self._unsaved:
            self._save_soon()
        return cell

    def cancel(self) -> bool:
        """Stop the running cell (its `Cell` says `cancelled`). False if none runs. May be called from any thread."""
        host, guest = self._host, self._guest
        if host is None or guest is None:
            return False
        host.end('cancelled')
        guest.interrupt()
        return True

    def interrupt(self) -> None:
        """At the end of the process."""
        self.cancel()

    # Variables and files ----------------------------------------------------------------------------------------------

    async def set_variables(self, variables: Mapping[str, object]) -> None:
        """Put plain data into the sandbox under these names."""
        packed = answers.pack_variables(variables)
        async with self._turn():
            await self._wake()
            await self._request({'op': 'set', 'values': packed}, self._options.limits.seconds, dict)
            self._unsaved = True

    async def get_variables(self, *names: str) -> dict[str, object]:
        """The values of these variables, or of all that are plain data. A name that has none is an error."""
        async with self._turn():
            await self._wake()
            request: dict[str, Json] = {'op': 'get', 'names': list(names) if names else None}
            return await self._request(
                request, self._options.limits.seconds, lambda answer: answers.variables(answer, names)
            )

    @property
    def workspace(self) -> Workspace:
        """The files of the sandbox, from the host's side."""
        if self._options.workspace is None:
            msg = 'this sandbox has no workspace: pass workspace=… to Sandbox.create'
            raise SandboxError(msg)
        return self._options.workspace

    async def upload(self, path: str, data: bytes | str) -> None:
        """Write a file of the workspace."""
        await asyncio.to_thread(self.workspace.write, path, data)

    async def download(self, path: str) -> bytes:
        """Read a file of the workspace. Links that lead out of it are refused."""
        return await asyncio.to_thread(self.workspace.read, path)

    @property
    def lost(self) -> tuple[str, ...]:
        """Variables that could not be saved, and so were not there after the last restore."""
        return self._checkpoint.lost if self._checkpoint else ()

    @property
    def isolation(self) -> str:
        """What keeps the code in, in one line."""
        return self._backend.isolation

    @property
    def busy(self) -> bool:
        """Whether it is doing something now."""
        return self._lock.locked()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    # Inside -----------------------------------------------------------------------------------------------------------

    _cells = 0

    def _spec(self) -> GuestSpec:
        options = self._options
        return GuestSpec(limits=options.limits, mounts=options.mounts)

    def _turn(self) -> '_Turn':
        return _Turn(self)

    def _make_host(self, seconds: float, on_output: OnOutput | None = None, *, with_tools: bool = True) -> CellHost:
        token = _inside.set(_inside.get() | {id(self)})
        try:
            return CellHost(
                tools=self._options.functions if with_tools else {},
                limits=self._options.limits,
                seconds=seconds,
                loop=asyncio.get_running_loop(),
                on_output=on_output,
                answer_input=self._options.answer_input if with_tools else None,
                network=self._options.network if with_tools else None,
            )
        finally:
            _inside.reset(token)

    async def _request(self, request: dict[str, Json], seconds: float, read: Callable[[dict[str, Json]], T]) -> T:
        """A request that is not a cell. If the guest does not survive it, the variables are rolled back.

        Code of the cells may run meanwhile (`__reduce__`, say), but has no tools: their calls would be in no `Cell`.
        """
        host = self._make_host(seconds, with_tools=False)
        try:
            return read(await self._enter(request, host, seconds))
        except (GuestDied, CodecError) as error:
            await self._roll_back()
            reason = f'it took longer than {seconds:g} s' if host.ended == 'time' else str(error)
            msg = f'the sandbox did not answer to {request["op"]!r} ({reason}); its variables are those of before'
            raise _Broke(msg) from error
        finally:
            host.close()

    async def _enter(self, request: dict[str, Json] | str, host: CellHost, seconds: float) -> dict[str, Json]:
        guest = self._guest
        assert guest is not None
        message = request if isinstance(request, str) else self._message(request)
        job = WORKERS.start(lambda: guest.enter(message, host))
        timer = asyncio.get_running_loop().call_later(seconds, self._expire, host, guest, job)
        try:
            text = await job.future
        except asyncio.CancelledError:
            await self._stop(host, guest, job)
            raise
        finally:
            timer.cancel()
        answer = parse(text)
        if not isinstance(answer, dict):
            msg = 'the sandbox did not answer with an object'
            raise CodecError(msg)
        return answer

    def _message(self, request: dict[str, Json]) -> str:
        """The request as text; the first one of an interpreter sets it up."""
        if self._fresh:
            self._fresh = False
            return dump({**request, 'setup': self._options.setup()})
        return dump(request)

    def _expire(self, host: CellHost, guest: Guest, job: Job[str]) -> None:
        host.end('time')
        guest.interrupt()
        asyncio.get_running_loop().call_later(GRACE, self._leave_behind, job)

    def _leave_behind(self, job: Job[str]) -> None:
        """The thread is stuck in a tool of the host. It cannot be killed; nobody waits for it."""
        if job.running and not job.future.done():
            self._guest = None  # closed by nobody: its thread still runs in it
            job.give_up(GuestDied('time', 'a tool of the host did not return in time'))

    async def _stop(self, host: CellHost, guest: Guest, job: Job[str]) -> None:
        """The caller was cancelled: end the guest before letting go of the lock."""
        host.end('cancelled')
        guest.interrupt()
        self._guest = None  # now: if we are cancelled again while it ends, nobody may enter it
        await self._roll_back()
        if await job.ended(GRACE):
            await WORKERS.submit(guest.close)

    async def _roll_back(self) -> None:
        """Replace the interpreter; the variables come back with the next request."""
        guest, self._guest = self._guest, None
        self._unsaved = False
        self._cells = self._checkpoint.cells if self._checkpoint else 0
        self._options.disconnect()
        if guest is not None:
            await WORKERS.submit(guest.close)

    async def _wake(self) -> None:
        """Have an interpreter with the right variables, and a checkpoint of them."""
        broke, self._broke = self._broke, None
        if broke is not None:
            raise broke
        if self._guest is None:
            self._fresh = True
            await self._start()
        if self._fresh and self._checkpoint is not None:
            await self._load_or_start_empty(self._checkpoint)
        if self._unsaved and self._options.checkpoints:
            await self._current()

    async def _load_or_start_empty(self, checkpoint: Checkpoint) -> None:
        """Variables may be made to destroy whoever loads them. They are tried once."""
        try:
            await self._load(checkpoint)
        except (SnapshotError, _Broke) as error:
            self._checkpoint = None
            await self._roll_back()
            msg = f'the variables could not be brought back ({error}); the sandbox is empty now'
            raise _Broke(msg) from error

    async def _load(self, checkpoint: Checkpoint) -> None:
        request: dict[str, Json] = {'op': 'load', 'state': checkpoint.state, 'python': checkpoint.python}
        answer = await self._request({**request, 'cells': checkpoint.cells}, self._save_seconds, dict)
        if problem := answer.get('problem'):
            raise SnapshotError(str(problem))
        self._checkpoint = checkpoint
        self._cells = checkpoint.cells

    def _remember(self, answer: dict[str, Json]) -> None:
        """Keep the variables the guest sent along, or note that they have to be asked for."""
        if 'state' in answer and self._options.checkpoints:
            self._checkpoint = answers.checkpoint(answer, self._cells)
            self._unsaved = False
        elif 'unsaved' in answer or not self._options.checkpoints:
            self._unsaved = True

    async def _current(self) -> Checkpoint:
        """The variables as they are now; asks the guest if the last checkpoint is older."""
        if self._checkpoint is not None and not self._unsaved:
            return self._checkpoint
        cells = self._cells
        checkpoint = await self._request(
            {'op': 'save'}, self._save_seconds, lambda answer: answers.checkpoint(answer, cells)
        )
        if self._options.checkpoints:
            self._checkpoint = checkpoint
            self._unsaved = False
        return checkpoint

    @property
    def _save_seconds(self) -> float:
        return max(SAVE_SECONDS, self._options.limits.seconds)

    def _save_soon(self) -> None:
        """Save while nobody waits; the next cell waits for it."""
        if self._options.checkpoints and (self._saver is None or self._saver.done()):
            self._saver = asyncio.get_running_loop().create_task(self._save_when_free())

    async def _save_when_free(self) -> None:
        async with self._lock:
            if self._unsaved and not self._closed and self._guest is not None:
                try:
                    await self._current()
                except _Broke as broke:
                    self._broke = broke  # the next to use the sandbox is told


class _Broke(SandboxError):
    """The interpreter did not survive a request that was not a cell. It is replaced by the next."""


class _Turn:
    """Holds the sandbox for one request, in the order of asking."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def __aenter__(self) -> None:
        sandbox = self._sandbox
        if id(sandbox) in _inside.get():
            msg = 'a tool cannot run code in the sandbox that is calling it; it would wait for itself (fork it)'
            raise SandboxError(msg)
        self._check()
        await sandbox._lock.acquire()  # pyright: ignore[reportPrivateUsage]
        try:
            self._check()
        except BaseException:
            sandbox._lock.release()  # pyright: ignore[reportPrivateUsage]
            raise
        sandbox.last_used = time.monotonic()

    def _check(self) -> None:
        if self._sandbox.closed:
            msg = 'this sandbox is closed'
            raise SandboxClosed(msg)

    async def __aexit__(self, *_: object) -> None:
        self._sandbox.last_used = time.monotonic()
        self._sandbox._lock.release()  # pyright: ignore[reportPrivateUsage]
