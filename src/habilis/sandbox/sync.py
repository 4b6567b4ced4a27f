"""The sandbox without `await`, for scripts and notebooks: one thin layer over the asynchronous one."""

import asyncio
import functools
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from habilis.core.errors import SandboxError
from habilis.sandbox.cellhost import OnOutput
from habilis.sandbox.contract import Cell
from habilis.sandbox.options import Settings
from habilis.sandbox.session import Sandbox
from habilis.sandbox.snapshot import Snapshot
from habilis.sandbox.workers import after_fork

T = TypeVar('T')


_lock = threading.Lock()


def _background_loop() -> asyncio.AbstractEventLoop:
    """An event loop in a thread of its own, so that this works inside a running loop too (Jupyter)."""
    with _lock:
        return _make_loop()


@functools.cache
def _make_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name='habilis-sync', daemon=True).start()
    return loop


after_fork(_make_loop.cache_clear)


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop and wait. Ctrl-C cancels it."""
    loop = _background_loop()
    if asyncio._get_running_loop() is loop:  # pyright: ignore[reportPrivateUsage]
        work.close()
        msg = 'an async tool of a SyncSandbox cannot wait for one, it would wait for itself; make the tool a plain def'
        raise SandboxError(msg)
    outcome: Future[T] = Future()  # made first: Ctrl-C may come as soon as the loop has the work
    try:
        loop.call_soon_threadsafe(_begin, work, outcome, loop)
        return outcome.result()
    except BaseException:
        outcome.cancel()
        raise


def _begin(work: Coroutine[Any, Any, T], outcome: 'Future[T]', loop: asyncio.AbstractEventLoop) -> None:
    task = loop.create_task(work)

    def tell(done: 'asyncio.Task[T]') -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if not outcome.set_running_or_notify_cancel():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(done.result())

    def stop(told: 'Future[T]') -> None:
        if told.cancelled():
            loop.call_soon_threadsafe(task.cancel)

    task.add_done_callback(tell)
    outcome.add_done_callback(stop)


class SyncSandbox:
    """`Sandbox` with plain methods. Made by `Sandbox.create_sync`; a context manager too."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        """The asynchronous sandbox behind it. It belongs to the background loop."""

    @classmethod
    def create(cls, backend_name: str = 'wasm', /, **settings: Unpack[Settings]) -> Self:
        """See `Sandbox.create`."""
        return cls(wait_for(Sandbox.create(backend_name, **settings)))

    @classmethod
    def restore(cls, data: bytes, backend_name: str = 'wasm', /, **settings: Unpack[Settings]) -> Self:
        """See `Sandbox.restore`."""
        return cls(wait_for(Sandbox.restore(data, backend_name, **settings)))

    def run(self, code: str, *, seconds: float | None = None, on_output: OnOutput | None = None) -> Cell:
        """See `Sandbox.run`."""
        return wait_for(self.sandbox.run(code, seconds=seconds, on_output=on_output))

    def fork(self) -> 'SyncSandbox':
        """See `Sandbox.fork`."""
        return SyncSandbox(wait_for(self.sandbox.fork()))

    def snapshot(self) -> Snapshot:
        """See `Sandbox.snapshot`."""
        return wait_for(self.sandbox.snapshot())

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """See `Sandbox.set_variables`."""
        wait_for(self.sandbox.set_variables(variables))

    def get_variables(self, *names: str) -> dict[str, object]:
        """See `Sandbox.get_variables`."""
        return wait_for(self.sandbox.get_variables(*names))

    def upload(self, path: str, data: bytes | str) -> None:
        """See `Sandbox.upload`."""
        wait_for(self.sandbox.upload(path, data))

    def download(self, path: str) -> bytes:
        """See `Sandbox.download`."""
        return wait_for(self.sandbox.download(path))

    def cancel(self) -> bool:
        """See `Sandbox.cancel`."""
        return self.sandbox.cancel()

    def close(self) -> None:
        """See `Sandbox.close`."""
        wait_for(self.sandbox.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
