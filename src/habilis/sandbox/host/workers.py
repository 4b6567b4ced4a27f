"""The threads that run guests.

A guest blocks its thread while it computes or waits for a tool, and one that runs JavaScript needs a large stack.
Threads are created when all are busy, and reused: a new one costs more than a small cell. They are daemons, so a thread
that is stuck in a tool does not keep the process alive.
"""

import asyncio
import atexit
import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar('T')
KEEP_IDLE = 16
"""Number of idle threads that stay; others end after some time."""

IDLE_SECONDS = 30.0
STACK = 32 << 20
"""Stack size of a worker in bytes; only the used part takes memory."""

_thread = threading.local()
_stack_size_lock = threading.Lock()


class Interruptible:
    """Something that runs on a worker and is interrupted at exit."""

    def interrupt(self) -> None:
        """Make it stop soon."""
        raise NotImplementedError


def require_deep_stack() -> None:
    """Raise `RuntimeError` unless this thread has the stack that a guest needs."""
    if not getattr(_thread, 'is_worker', False):
        msg = 'a guest runs only on the threads of habilis.sandbox.host.workers: they have the deep stack it needs'
        raise RuntimeError(msg)


def start_deep_thread(target: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon thread on which guests may run."""

    def run() -> None:
        _thread.is_worker = True
        target()

    thread = threading.Thread(target=run, name=name, daemon=True)
    with _stack_size_lock:  # the setting is global
        before = threading.stack_size(STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    return thread


class WorkerCall(Generic[T]):
    """A call on a worker. `future` is its outcome; cancelling the future does not stop the call."""

    def __init__(
        self, call: Callable[[], T], loop: asyncio.AbstractEventLoop, discard: Callable[[T], object] | None
    ) -> None:
        self._call = call
        self._loop = loop
        self._discard = discard
        self._ended: asyncio.Future[object] | None = None
        self.future: asyncio.Future[T] = loop.create_future()
        self.running = True
        self._afterwards: Callable[[], object] | None = None

    async def result(self) -> T:
        """Wait for the outcome. If the caller is cancelled, it is discarded, also one that has just come."""
        try:
            return await self.future
        except asyncio.CancelledError:
            if self.future.done() and not self.future.cancelled() and self.future.exception() is None:
                found = self.future.result()
                WORKERS.submit(lambda: self._free(found, failed=False))
            raise

    async def ends_well(self) -> bool:
        """Wait for the call although its caller was cancelled, as by the end of an event loop. False if it fails, or if
        the caller is cancelled once more."""
        try:
            await asyncio.wait([self.future])
        except asyncio.CancelledError:
            return False
        return self.future.exception() is None

    def run(self) -> Callable[[], None]:
        """Make the call, on the worker. Returns a function that reports the outcome to the event loop."""
        outcome: object
        try:
            outcome, failed = self._call(), False
        except BaseException as error:
            outcome, failed = error, True
        if self.future.done():  # nobody waits, and the event loop may be closed before it would free the outcome
            self._free(outcome, failed=failed)
        return lambda: self._tell(outcome, failed)

    def _tell(self, outcome: object, failed: bool) -> None:
        try:
            self._loop.call_soon_threadsafe(self._end, outcome, failed)
        except RuntimeError:  # the loop is closed
            self._free(outcome, failed=failed)

    def _end(self, outcome: Any, failed: bool) -> None:
        self.running = False
        if self.future.done():
            freed = WORKERS.submit(lambda: self._free(outcome, failed=failed))
            if self._ended is not None:
                freed.add_done_callback(self._ended.set_result)
        elif failed:
            self.future.set_exception(outcome)
            self.future.exception()  # no warning if nothing awaits it
        else:
            self.future.set_result(outcome)

    def _free(self, outcome: Any, *, failed: bool) -> None:
        """Free an outcome that nobody waits for any more, once."""
        discard, self._discard = self._discard, None
        afterwards, self._afterwards = self._afterwards, None
        if discard is not None and not failed:
            discard(outcome)
        if afterwards is not None:
            afterwards()

    def give_up(self, error: Exception, afterwards: Callable[[], object]) -> None:
        """Fail the future. The call keeps running; `afterwards` is called on a worker when it has ended."""
        self._afterwards = afterwards
        if not self.future.done():
            self.future.set_exception(error)

    async def finish(self, afterwards: Callable[[], object], seconds: float) -> None:
        """Have this called on a worker when the call itself has ended, whose outcome nobody wants any more. Waits for
        both, but not longer than `seconds`."""
        if not self.running:
            await WORKERS.submit(afterwards)
            return
        self._afterwards = afterwards
        self.future.cancel()
        self._ended = self._loop.create_future()
        await asyncio.wait([self._ended], timeout=seconds)


_Jobs = SimpleQueue[WorkerCall[Any]]


class Workers:
    """The threads of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Jobs] = []
        self._count = 0
        self._jobs = 0
        self._busy: set[threading.Thread] = set()

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs on a worker, or is about to."""
        return self._jobs == 0

    def submit(self, call: Callable[[], T]) -> 'asyncio.Future[T]':
        """Run a call on a worker; the future of its outcome."""
        return self.start(call).future

    def start(self, call: Callable[[], T], *, discard: Callable[[T], object] | None = None) -> WorkerCall[T]:
        """Run a call on a worker. The job belongs to the running event loop.

        `discard` frees a result that comes when nobody waits for it any more.
        """
        job = WorkerCall(call, asyncio.get_running_loop(), discard)
        with self._lock:
            self._jobs += 1
            queue = self._idle.pop() if self._idle else None
        if queue is None:
            queue = self._start()
        queue.put(job)
        return job

    def _start(self) -> _Jobs:
        queue = _Jobs()
        with self._lock:
            self._count += 1
            name = f'habilis-{self._count}'
        start_deep_thread(functools.partial(self._run, queue), name)
        return queue

    def _run(self, queue: _Jobs) -> None:
        thread = threading.current_thread()
        while (job := self._next(queue)) is not None:
            self._busy.add(thread)
            tell = job.run()
            del job
            self._busy.discard(thread)
            with self._lock:
                self._jobs -= 1
                self._idle.append(queue)
            tell()  # last, so that the event loop does not wait for this thread to release the GIL
            del tell  # it refers to the guest

    def _next(self, queue: _Jobs) -> WorkerCall[object] | None:
        """The next job; None if there was none for some time, and enough other threads are idle."""
        while True:
            with contextlib.suppress(Empty):
                return queue.get(timeout=IDLE_SECONDS)
            with self._lock:
                if queue in self._idle and len(self._idle) > KEEP_IDLE:
                    self._idle.remove(queue)
                    return None

    def settle(self, seconds: float) -> None:
        """Wait for busy threads, at exit, after their guests were interrupted."""
        pause = threading.Event()
        while self._busy and seconds > 0:
            pause.wait(0.01)
            seconds -= 0.01


def after_fork(call: Callable[[], object]) -> None:
    """Call this in every forked process, which has no threads of its parent."""
    if hasattr(os, 'register_at_fork'):
        os.register_at_fork(after_in_child=call)


WORKERS = Workers()
after_fork(WORKERS.__init__)
_running: weakref.WeakSet[Interruptible] = weakref.WeakSet()


def stop_at_exit(running: Interruptible) -> None:
    """Interrupt this at exit, so that no thread is inside a guest while Python shuts down."""
    _running.add(running)


@atexit.register
def _stop_all() -> None:
    for running in list(_running):
        running.interrupt()
    WORKERS.settle(2.0)
