"""Threads that guests run on.

A guest blocks its thread while it computes or waits for a tool, and needs a deep stack. Threads are reused, made when
all are busy, and are daemons: one that is stuck in somebody's tool does not keep the process alive.
"""

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar('T')
KEEP_IDLE = 16
STACK = 80 << 20
"""Bytes of stack of a worker; only what is used of it takes memory."""

_thread = threading.local()
_stack_size_lock = threading.Lock()


class Interruptible:
    """Something that runs on a worker and can be told to stop when the process ends."""

    def interrupt(self) -> None:
        """Stop soon."""
        raise NotImplementedError


def require_deep_stack() -> None:
    """Refuse to go on where a guest could overflow the stack of the process."""
    if not getattr(_thread, 'is_worker', False):
        msg = 'a guest runs only on the threads of habilis.sandbox.workers: they have the deep stack it needs'
        raise RuntimeError(msg)


def start_deep_thread(target: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon thread on which guests may run."""

    def run() -> None:
        _thread.is_worker = True
        target()

    thread = threading.Thread(target=run, name=name, daemon=True)
    with _stack_size_lock:  # the setting is the whole process's
        before = threading.stack_size(STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    return thread


class Job(Generic[T]):
    """A call on a worker. `future` is its outcome; whoever awaits that may be cancelled, the call itself may not."""

    def __init__(self, call: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self._call = call
        self._loop = loop
        self._ended: asyncio.Event | None = None
        self.future: asyncio.Future[T] = loop.create_future()
        self.running = True

    def run(self) -> Callable[[], None]:
        """On the worker. What it returns tells the event loop of the outcome."""
        outcome: object
        try:
            outcome, failed = self._call(), False
        except BaseException as error:
            outcome, failed = error, True
        return lambda: self._tell(outcome, failed)

    def _tell(self, outcome: object, failed: bool) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._end, outcome, failed)

    def _end(self, outcome: Any, failed: bool) -> None:
        self.running = False
        if self._ended is not None:
            self._ended.set()
        if self.future.done():
            return
        if failed:
            self.future.set_exception(outcome)
            self.future.exception()  # whoever awaits it gets it; if nobody does, no noise
        else:
            self.future.set_result(outcome)

    def give_up(self, error: Exception) -> None:
        """Stop waiting; the call goes on."""
        if not self.future.done():
            self.future.set_exception(error)

    async def ended(self, seconds: float) -> bool:
        """Wait for the end of the call, whatever became of its future. False if it takes longer."""
        if self.running:
            self._ended = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._ended.wait()
        return not self.running


class Workers:
    """The threads of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[Job[Any]]] = []
        self._count = 0
        self._busy: weakref.WeakSet[threading.Thread] = weakref.WeakSet()

    def submit(self, call: Callable[[], T]) -> 'asyncio.Future[T]':
        """Run the call on a worker and wait for it."""
        return self.start(call).future

    def start(self, call: Callable[[], T]) -> Job[T]:
        """Run the call on a worker. The job belongs to the running event loop."""
        job = Job(call, asyncio.get_running_loop())
        with self._lock:
            queue = self._idle.pop() if self._idle else None
        if queue is None:
            queue = self._start()
        queue.put(job)
        return job

    def _start(self) -> 'SimpleQueue[Job[Any]]':
        queue: SimpleQueue[Job[Any]] = SimpleQueue()
        with self._lock:
            self._count += 1
            name = f'habilis-{self._count}'
        start_deep_thread(lambda: self._run(queue), name)
        return queue

    def _run(self, queue: 'SimpleQueue[Job[Any]]') -> None:
        thread = threading.current_thread()
        while True:
            job = queue.get()
            self._busy.add(thread)
            tell = job.run()
            del job
            self._busy.discard(thread)
            stays = self._rest(queue)
            tell()  # last, so that the event loop does not have to wait for this thread to let go of Python
            del tell  # or an idle thread would keep the last guest alive
            if not stays:
                return

    def _rest(self, queue: 'SimpleQueue[Job[Any]]') -> bool:
        """Wait for more work, unless enough threads do already."""
        with self._lock:
            if len(self._idle) < KEEP_IDLE:
                self._idle.append(queue)
                return True
        return False

    def settle(self, seconds: float) -> None:
        """Wait a little for busy threads; at exit, after their guests were interrupted."""
        pause = threading.Event()
        while self._busy and seconds > 0:
            pause.wait(0.01)
            seconds -= 0.01


def after_fork(call: Callable[[], object]) -> None:
    """Have this called in every process that is forked from this one: threads do not go along."""
    if hasattr(os, 'register_at_fork'):
        os.register_at_fork(after_in_child=call)


WORKERS = Workers()
after_fork(WORKERS.__init__)
_running: weakref.WeakSet[Interruptible] = weakref.WeakSet()


def stop_at_exit(running: Interruptible) -> None:
    """Have this interrupted when the process exits, so that no thread is inside a guest while Python shuts down."""
    _running.add(running)


@atexit.register
def _stop_all() -> None:
    for running in list(_running):
        running.interrupt()
    WORKERS.settle(2.0)
