"""The interpreter of a sandbox: one guest at a time, and the checkpoint from which it is replaced.

A guest that was stopped by force cannot be used again. The next request starts a new one with the variables of the
checkpoint, which the guest saved after the last cell. A small state is sent with the answer of each cell; a larger one
is saved in the background, and the next cell waits for it.
"""

import asyncio
import functools
import logging
import re
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, cast

from habilis.core.codec import CodecError, Json, dump_with
from habilis.core.errors import SandboxError, SnapshotError
from habilis.sandbox.code_rules import CodeRules
from habilis.sandbox.contract import (
    ROLLED_BACK,
    Backend,
    BriefGuest,
    Cell,
    ErrorKind,
    ForkableGuest,
    Guest,
    GuestDied,
    GuestSpec,
    QuickBackend,
    Variable,
)
from habilis.sandbox.host import results
from habilis.sandbox.host.cell_host import CellHost
from habilis.sandbox.host.file_guard import guard_of
from habilis.sandbox.host.guest_messages import PARSED_AT_ONCE, parse_answer
from habilis.sandbox.host.workers import WORKERS, Interruptible, WorkerCall, stop_at_exit
from habilis.sandbox.options import SandboxOptions
from habilis.sandbox.snapshot import SavedVariables

GRACE = 1.0
"""Seconds after its time limit until the thread of a cell is abandoned."""

SAVE_SECONDS = 5.0
"""Time limit for saving or loading the variables; the limit of a cell, if that is longer."""

MAX_TURN = 0.001
"""Seconds for which the short cells of one sandbox may keep the event loop."""

MAX_PROBLEM = 2000
MAX_BRIEF = 0.05
"""Seconds on the thread of the event loop after which a guest is never entered there again. It returns at a tick, but
not before a copy of its whole memory, which it may make again and again, has ended."""

T = TypeVar('T')
_log = logging.getLogger(__name__)
_eager: 'set[Interpreter]' = set()
"""Those that are about to start a guest, or to send it a request."""

_SURROGATE = re.compile('[\ud800-\udfff]')


class GuestFailed(SandboxError):
    """The guest failed during a request that was not a cell. The next request starts a new one."""

    kind: ErrorKind = 'broken'


class Interpreter(Interruptible):
    """Starts guests, sends them requests one at a time, and keeps checkpoints of their variables."""

    def __init__(self, backend: Backend, options: SandboxOptions, checkpoint: SavedVariables | None = None) -> None:
        self.backend = backend
        self.checkpoint = checkpoint
        self.unsaved = False
        """Whether the variables have changed since the checkpoint."""

        self.described: dict[str, Variable] | None = None
        """The descriptions of the variables, if they are known since the last request."""

        self._options = options
        self._guest: Guest | None = None
        self._brief_guest: BriefGuest | None = None
        """The same, if it can be entered on the thread of the event loop."""

        self._host: CellHost | None = None
        self._entered: tuple[CellHost, Guest, WorkerCall[Any]] | None = None
        self._alarm: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None
        """For the time limit of a request, and kept for the next ones: one for each takes 7 % of a small cell."""

        self._paused = 0.0
        """When `_is_alone` last let other tasks run."""

        self.is_fresh = True
        """Whether no request was sent to the guest yet."""

        self._cells = 0
        guarded = [space.folder for space in options.writable_folders if space.is_guarded]
        self._guards = [guard_of(folder, by_path=getattr(backend, 'copies_files', False)) for folder in guarded]
        self._undone: list[str] = []

    async def start(self) -> None:
        """Start a guest; its first request sets it up."""
        options = self._options
        grant = options.network.grant if options.network else None
        spec = GuestSpec(limits=options.limits, mounts=options.mounts, network=grant)
        self._guest = guest = await start_guest(self.backend, spec, alone=await self._is_alone())
        self._brief_guest = guest if isinstance(guest, BriefGuest) and not self._guards else None
        self.is_fresh = True
        self.described = None if options.variables or self.checkpoint is not None else {}
        stop_at_exit(self)

    @property
    def alive(self) -> bool:
        """Whether a guest is running."""
        return self._guest is not None

    async def close(self) -> None:
        """Free the guest."""
        guest, self._guest = self._guest, None
        self._options.disconnect()
        if self._alarm is not None:
            self._alarm[1].cancel()
            self._alarm = None
        if guest is not None:
            await WORKERS.submit(lambda: self._close(guest))

    def _close(self, guest: Guest) -> None:
        guest.close()
        self._undo_changes(still_running=False)

    def interrupt(self) -> None:
        """Stop the running request of any kind. Thread-safe."""
        if entered := self._entered:
            host, guest, _ = entered
            host.end('cancelled')
            guest.interrupt()

    def cancel(self) -> bool:
        """Stop the running cell. False if none is running. Thread-safe."""
        host, guest = self._host, self._guest
        if host is None or guest is None:
            return False
        host.end('cancelled')
        guest.interrupt()
        return True

    async def fork(self, options: SandboxOptions) -> 'Interpreter | None':
        """A twin with everything that is in memory, where the guest can be forked. None: use the checkpoint."""
        guest = self._guest
        if not isinstance(guest, ForkableGuest) or self.is_fresh:
            return None
        job = WORKERS.start(guest.fork, discard=_close_late)
        try:
            forked = await job.result()
        except GuestDied:
            await self.roll_back()
            return None
        except asyncio.CancelledError:
            await self._give_up(guest, job)
            raise
        if forked is None:
            return None
        twin = Interpreter(self.backend, options, self.checkpoint)
        for guard in twin._guards:  # its code may go on before its first request
            guard.begin(twin)
        twin._guest, twin.is_fresh, twin._cells, twin.unsaved = forked, False, self._cells, self.unsaved
        stop_at_exit(twin)
        return twin

    # Cells and other requests -----------------------------------------------------------------------------------------

    async def run(self, code: str, rules: CodeRules | None, host: CellHost, *, describe: bool = False) -> Cell:
        """Run a cell. If its guest must be replaced, the next request starts from the checkpoint."""
        brief = self._brief_guest is not None and await self._is_alone()
        self._host = host
        self.described = None
        self._cells += 1
        died = True
        message, cells = self._cell_request(code, rules, describe), self._cells

        def read(answer: dict[str, Json]) -> results.CellAnswer:
            return results.parse_cell(answer, host, cells, describe=describe)

        try:
            done = await self._enter(message, host, read, brief=brief)
            cell, self.described = done.cell, done.described
            self._remember(done)
            died = False
        except GuestDied as death:
            cell = results.cell_of_dead_guest(host, host.ended or death.kind, death, code, cells)
        except CodecError as error:
            cell = results.cell_of_dead_guest(host, 'broken', error, code, cells)
        finally:
            self._host = None
            host.close()
        if died or (cell.error is not None and cell.error.kind in ROLLED_BACK):
            await self.roll_back()
            lost = self.checkpoint.lost if self.checkpoint else ()
            cell = results.rolled_back_cell(cell, lost, kept=self._options.checkpoints)
        undone = self.take_undone()
        return results.cell_with_undone(cell, undone) if undone else cell

    def take_undone(self) -> list[str]:
        """The protected files whose changes were undone since the last call."""
        undone, self._undone = self._undone, []
        return undone

    def _cell_request(self, code: str, rules: CodeRules | None, describe: bool) -> str:
        if rules is None and not self.is_fresh and not _SURROGATE.search(code):
            return ('d' if describe else 'r') + code  # see `Kernel.enter`
        request: dict[str, Json] = {'op': 'run', 'code': code, 'describe': describe}
        if rules is not None:
            request['code_rules'] = cast('Json', rules.to_json())
        return self._message(request)

    async def request(
        self, request: dict[str, Json], host: CellHost, seconds: float, read: Callable[[dict[str, Json]], T]
    ) -> T:
        """Send a request that is not a cell. If the guest fails, the variables are rolled back."""
        brief = self._brief_guest is not None and await self._is_alone()
        if request['op'] != 'save':
            self.described = None
        try:
            keeps = request['op'] == 'save'
            return await self._enter(self._message(request), host, read, brief=brief, keeps=keeps)
        except (GuestDied, CodecError) as error:
            await self.roll_back()
            reason = f'it took longer than {seconds:g} s' if host.ended == 'time' else str(error)
            msg = f'the sandbox did not answer {request["op"]!r} ({reason}); its variables were rolled back'
            failure = GuestFailed(msg)
            if isinstance(error, GuestDied) and error.kind == 'memory':
                failure.kind = 'memory'
            raise failure from error
        finally:
            host.close()

    async def _is_alone(self) -> bool:
        """Whether no other sandbox needs a core now: then what is short is done on this thread. Lets other tasks run,
        if they could not for a moment."""
        if time.monotonic() > self._paused + MAX_TURN:
            _eager.add(self)
            try:
                await asyncio.sleep(0)
            finally:
                _eager.discard(self)
            if _eager or not WORKERS.is_idle:
                return False
            if not self.is_fresh:  # a new one is often one of many
                self._paused = time.monotonic()
        return not _eager and WORKERS.is_idle

    async def _enter(
        self, message: str, host: CellHost, read: Callable[[dict[str, Json]], T], *, brief: bool, keeps: bool = False
    ) -> T:
        """Send a message and read the answer. What takes longer than a moment is done by a worker: neither the guest,
        nor a forged answer, may block the event loop. If the caller is cancelled the guest ends, unless `keeps`."""
        guest = self._guest
        assert guest is not None
        work: Callable[[], str] = functools.partial(guest.enter, message, host)
        if brief and self._brief_guest is not None:
            began = time.monotonic()
            answer = self._brief_guest.begin(message, host)
            if answer is not None and len(answer) <= PARSED_AT_ONCE:
                return read(parse_answer(answer))
            work = functools.partial(self._brief_guest.go_on, host) if answer is None else lambda: answer
            if time.monotonic() - began > MAX_BRIEF:
                self._brief_guest = None
        job = WORKERS.start(lambda: self._guarded(lambda: read(parse_answer(work()))))
        self._entered = host, guest, job
        self._set_alarm(host.seconds_limit)
        try:
            return await (asyncio.shield(job.future) if keeps else job.future)
        except asyncio.CancelledError:
            if not keeps or not await job.ends_well():
                await self._stop(host, guest, job)
            raise
        finally:
            self._entered = None

    def _guarded(self, work: Callable[[], T]) -> T:
        """Run code of the guest, and undo what it does to protected files."""
        for guard in self._guards:
            guard.begin(self)
        try:
            return work()
        finally:
            self._undo_changes(still_running=self._may_go_on())

    def _may_go_on(self) -> bool:
        """Whether code of the guest may run while no request does."""
        has_processes = getattr(self.backend, 'has_processes', False)
        if not getattr(self.backend, 'runs_between_requests', has_processes):
            return False
        is_idle: Callable[[Guest], bool] | None = getattr(self.backend, 'is_idle', None)
        return self._guest is None or is_idle is None or not is_idle(self._guest)

    def _undo_changes(self, *, still_running: bool) -> None:
        for guard in self._guards:
            for path in guard.end(self, still_running=still_running):
                _log.warning('%s was changed while code of a sandbox could run, and is restored', path)
                self._undone.append(path)

    def _message(self, request: dict[str, Json]) -> str:
        """Encode a request; the first one of a guest includes the setup."""
        if self.is_fresh:
            self.is_fresh = False
            setup = self._options.setup(with_variables=self.checkpoint is None)
            return dump_with({**request, 'setup': setup}, 'state')
        return dump_with(request, 'state')

    def _set_alarm(self, seconds: float) -> None:
        """Call `_expire` when a time limit may have passed: in so many seconds, or earlier."""
        loop = asyncio.get_running_loop()
        if self._alarm is not None:
            own_loop, timer = self._alarm
            if own_loop is loop and timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._alarm = loop, loop.call_later(seconds, _call, weakref.WeakMethod(self._expire))

    def _expire(self) -> None:
        """End the running request if its time is over. The alarm may have been set for an earlier one."""
        self._alarm = None
        if self._entered is None:
            return
        host, guest, job = self._entered
        if not host.deadline.is_expired():
            self._set_alarm(host.deadline.remaining())
            return
        host.end('time')
        guest.interrupt()
        asyncio.get_running_loop().call_later(GRACE, self._abandon, guest, job)

    def _abandon(self, guest: Guest, job: WorkerCall[T]) -> None:
        """Stop waiting for a thread that is stuck in a host tool: it cannot be killed."""
        if job.running and not job.future.done():
            self._guest = None
            death = GuestDied('time', 'a tool of the host did not return in time')
            job.give_up(death, lambda: self._close(guest))  # not before: the thread still runs in it

    async def _stop(self, host: CellHost, guest: Guest, job: WorkerCall[T]) -> None:
        """End the guest after the caller was cancelled, before the next request."""
        host.end('cancelled')
        await self._give_up(guest, job)

    async def _give_up(self, guest: Guest, job: WorkerCall[T]) -> None:
        guest.interrupt()
        self._guest = None  # first: if this is cancelled too, nothing may enter the guest
        await self.roll_back()
        await job.finish(lambda: self._close(guest), GRACE)

    # Variables --------------------------------------------------------------------------------------------------------

    async def roll_back(self) -> None:
        """Close the guest; the next request restores the variables of the checkpoint."""
        self.unsaved, self.described = False, None
        self._cells = self.checkpoint.cells if self.checkpoint else 0
        await self.close()

    async def with_options(self, options: SandboxOptions, host: Callable[[float], CellHost]) -> 'Interpreter':
        """Another interpreter with the same variables. This one stays as it is. Raises if variables would be lost."""
        checkpoint = await self.current(host)
        if checkpoint.lost:
            names = ', '.join(checkpoint.lost)
            msg = f'the interpreter must be replaced, but these variables cannot be saved: {names}; delete them first'
            raise SandboxError(msg)
        made = Interpreter(self.backend, options, checkpoint)
        try:
            await made.start()
            await made.load(checkpoint, host)
        except BaseException:
            await made.close()
            raise
        return made

    async def wake(self, host: Callable[[float], CellHost]) -> None:
        """Make sure that there is a guest with the current variables, and a checkpoint of them."""
        if self._guest is None:
            await self.start()
        if self.is_fresh and self.checkpoint is not None:
            await self._load_or_start_empty(self.checkpoint, host)
        if self.unsaved and self._options.checkpoints:
            await self.current(host)

    async def load(self, checkpoint: SavedVariables, host: Callable[[float], CellHost]) -> None:
        """Load saved variables into the guest."""
        request: dict[str, Json] = {'op': 'load', 'state': checkpoint.state, 'python': checkpoint.python}
        seconds = self._save_seconds
        answer = await self.request({**request, 'cells': checkpoint.cells}, host(seconds), seconds, dict)
        if problem := answer.get('problem'):
            raise SnapshotError(str(problem)[:MAX_PROBLEM])
        self.checkpoint = checkpoint
        self._cells = checkpoint.cells

    async def _load_or_start_empty(self, checkpoint: SavedVariables, host: Callable[[float], CellHost]) -> None:
        """Load the checkpoint, at most once: malicious variables may crash every guest that loads them."""
        try:
            await self.load(checkpoint, host)
        except (SnapshotError, GuestFailed) as error:
            self.checkpoint = None
            await self.roll_back()
            msg = f'the variables could not be restored ({error}); the sandbox is empty now'
            raise GuestFailed(msg) from error

    def _remember(self, done: results.CellAnswer) -> None:
        """Keep the variables in an answer, or note that they must be saved."""
        if done.checkpoint is not None and self._options.checkpoints:
            self.checkpoint = done.checkpoint
            self.unsaved = False
        elif done.unsaved or not self._options.checkpoints:
            self.unsaved = True

    async def current(self, host: Callable[[float], CellHost]) -> SavedVariables:
        """A checkpoint of the current variables; asks the guest if the last one is outdated."""
        if self.checkpoint is not None and not self.unsaved:
            return self.checkpoint
        cells, seconds = self._cells, self._save_seconds
        checkpoint = await self.request(
            {'op': 'save'}, host(seconds), seconds, lambda answer: results.parse_checkpoint(answer, cells)
        )
        if self._options.checkpoints:
            self.checkpoint = checkpoint
            self.unsaved = False
        return checkpoint

    @property
    def _save_seconds(self) -> float:
        return max(SAVE_SECONDS, self._options.limits.seconds)


async def start_guest(backend: Backend, spec: GuestSpec, *, alone: bool = False) -> Guest:
    """Start a guest, on a worker if that takes time. It is closed if the caller is cancelled meanwhile."""
    if isinstance(backend, QuickBackend) and (guest := backend.start_here(spec, alone=alone)) is not None:
        return guest
    return await WORKERS.start(lambda: backend.start(spec), discard=_close_late).result()


def _call(method: Callable[[], Callable[[], object] | None]) -> None:
    """Call a weak method: an alarm does not keep an interpreter that nobody uses any more."""
    if (found := method()) is not None:
        found()


def _close_late(guest: Guest | None) -> None:
    """Free a guest that was started or forked for someone who has been cancelled meanwhile."""
    if guest is not None:
        guest.close()
