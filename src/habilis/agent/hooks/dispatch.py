"""Events on their way to those who watch: in order, to each of them, whatever one of them does."""

import asyncio
import contextlib
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import Protocol, cast, runtime_checkable

from habilis.core.events import Event
from habilis.models.contract import Message

logger = logging.getLogger('habilis.agent')

GRACE = 5.0
"""Seconds that hooks get to finish when their run is closed."""

Hook = Callable[[Event], Awaitable[None] | None]
"""Sees every event; sync or async. What it raises is reported as an event of its own and stops nothing."""


@runtime_checkable
class OutgoingHook(Protocol):
    """A hook that may also change what goes out to the model. The history stays as it is."""

    def outgoing(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages to send instead."""
        ...


_telling: 'ContextVar[Watchers | None]' = ContextVar('habilis_watchers', default=None)
"""Whose hook runs here. A hook that waits for its own run to be told would wait for itself."""


class Watchers:
    """Delivers the events of one run, in the order of `emit`, which may be called from any thread and never waits.

    Hooks are called on the event loop of the run, one after the other, in the context in which the run was started.
    """

    def __init__(self, hooks: Iterable[Hook], *, run: str, agent: str) -> None:
        self._hooks = tuple(hooks)
        self._run, self._agent = run, agent
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._context.run(_telling.set, self)
        self._waiting: deque[Event] = deque()
        self._pump: asyncio.Task[None] | None = None
        self.step = 0
        self.muted = False
        """While a run that is resumed catches up: what happened then was told then."""

        self.on_live: Callable[[], None] | None = None
        """Called once when the step does something that is not in the record."""

    def go_live(self) -> None:
        """From here on it happens, and is told."""
        self.muted = False
        call, self.on_live = self.on_live, None
        if call is not None:
            call()

    @property
    def anyone(self) -> bool:
        """Whether somebody watches at all."""
        return bool(self._hooks)

    def emit(self, event: Event) -> None:
        """Tell everyone, soon."""
        if not self._hooks or self.muted:
            return
        # Queued here, not on the loop: an event of another thread keeps its place among those of the loop.
        self._waiting.append(
            replace(event, run=self._run, agent=event.agent or self._agent, step=event.step or self.step)
        )
        if self._is_here():
            self._wake()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
                self._loop.call_soon_threadsafe(self._wake)

    async def drain(self) -> None:
        """Wait until all that was emitted has been seen."""
        if _telling.get() is self:
            return
        if not self._is_here():  # resumed elsewhere than it was started
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.drain(), self._loop))
            return
        while (pump := self._wake()) is not None:
            await asyncio.wait({pump})  # unlike `await pump`, leaves it alone if this is cancelled

    async def close(self, seconds: float = GRACE) -> None:
        """`drain`, but a hook that takes longer is given up, and what it has not seen is dropped."""
        try:
            async with asyncio.timeout(seconds):
                await self.drain()
        except TimeoutError:
            logger.warning('a hook did not finish within %g s; %d events were not told', seconds, len(self._waiting))
            self._waiting.clear()
            if self._pump is not None:
                self._pump.cancel()
                await asyncio.wait({self._pump}, timeout=seconds)

    def outgoing(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """What the hooks make of the messages that go out. What a broken one says is not taken."""
        for hook in self._hooks:
            if isinstance(hook, OutgoingHook):
                try:
                    messages = _checked(hook.outgoing(messages))
                except Exception as error:
                    self._report(hook, error)
        return messages

    def _is_here(self) -> bool:
        """Whether this is the loop of the run. One that has stopped is replaced: the run goes on in another."""
        running = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]
        if running is not None and running is not self._loop and not self._loop.is_running():
            self._loop, self._pump = running, None
        return running is self._loop

    def _wake(self) -> asyncio.Task[None] | None:
        """The task that delivers; None if there is nothing to deliver."""
        if self._pump is not None and self._pump.done():
            self._pump = None
        if self._pump is None and self._waiting:
            self._pump = self._loop.create_task(self._deliver(), context=self._context)
        return self._pump

    async def _deliver(self) -> None:
        while self._waiting:
            event = self._waiting.popleft()
            for hook in self._hooks:
                await self._show(hook, event)

    async def _show(self, hook: Hook, event: Event) -> None:
        try:
            result = hook(event)
            if inspect.isawaitable(result):
                await result
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # this task is to end; otherwise something inside the hook was cancelled
            if event.kind != 'hook_failed':  # or a broken hook would be told of itself for ever
                self._report(hook, error)

    def _report(self, hook: object, error: BaseException) -> None:
        name = getattr(hook, '__qualname__', type(hook).__qualname__)
        text = f'{name}: {_described(error)}'
        logger.warning('the hook %s', text)
        self.emit(Event(kind='hook_failed', text=text, data=error))


def _checked(messages: object) -> tuple[Message, ...]:
    if inspect.iscoroutine(messages):
        messages.close()
        msg = 'outgoing must be a plain function, not async'
        raise TypeError(msg)
    changed = tuple(cast('Iterable[object]', messages))
    wrong = [message for message in changed if not isinstance(message, Message)]
    if wrong or not changed:
        msg = f'outgoing must return messages, not {type(wrong[0]).__name__ if wrong else "nothing"}'
        raise TypeError(msg)
    return cast('tuple[Message, ...]', changed)


def _described(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # its own `__str__` is broken too
        text = ''
    return f'{type(error).__name__}: {text}' if text else type(error).__name__
