"""Delivers events to hooks, in order. A hook that fails does not affect the others."""

import asyncio
import contextlib
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import ParamSpec, Protocol, cast, runtime_checkable

from habilis.agent.events import AgentEvent, HookFailed
from habilis.models.contract import Message

logger = logging.getLogger('habilis.agent')

P = ParamSpec('P')

GRACE = 5.0
"""Seconds that hooks get to finish when their run is closed."""

Hook = Callable[[AgentEvent], Awaitable[None] | None]
"""Called with every event; sync or async. An error it raises is emitted as `HookFailed`, and the run continues."""


@runtime_checkable
class OutgoingHook(Protocol):
    """A hook that also changes the messages sent to the model. The history is not changed."""

    def outgoing(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages to send instead."""
        ...


_current: 'ContextVar[Dispatcher | None]' = ContextVar('habilis_dispatcher', default=None)
"""The dispatcher whose hook is running: if the hook drained it, it would wait for itself."""


class Dispatcher:
    """Delivers the events of one run, in the order of `emit`, which may be called from any thread and never waits.

    Hooks are called one after the other on the event loop of the run, in the context in which the run was started.
    """

    def __init__(self, hooks: Iterable[Hook], *, run: str, agent: str, parent: str = '') -> None:
        self._hooks = tuple(hooks)
        self._origin = {'run': run, 'parent': parent}
        self._agent = agent
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._waiting: deque[AgentEvent] = deque()
        self._pump: asyncio.Task[None] | None = None
        self.step = 0
        self.is_muted = False
        """True during a replay: those events were delivered before."""

        self.on_live: Callable[[], None] | None = None
        """Called once when a step does something that is not in the record."""

    def go_live(self) -> None:
        """The replay is over: deliver events from now on."""
        self.is_muted = False
        call, self.on_live = self.on_live, None
        if call is not None:
            call()

    @property
    def has_hooks(self) -> bool:
        """Whether there are any hooks."""
        return bool(self._hooks)

    def report(self, kind: Callable[P, AgentEvent], *args: P.args, **fields: P.kwargs) -> None:
        """Queue an event of this kind for all hooks. It is made only if there are any."""
        if self._hooks and not self.is_muted:
            self.emit(kind(*args, **fields))

    def emit(self, event: AgentEvent) -> None:
        """Queue an event for all hooks."""
        if not self._hooks or self.is_muted:
            return
        # Queued here, not on the loop: an event of another thread keeps its place among those of the loop.
        self._waiting.append(
            replace(event, **self._origin, agent=event.agent or self._agent, step=event.step or self.step)
        )
        if self._is_here():
            self._wake()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: no hook can run
                self._loop.call_soon_threadsafe(self._wake)

    async def drain(self) -> None:
        """Wait until all queued events are delivered."""
        if _current.get() is self:
            return
        if not self._is_here():  # resumed on another loop
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.drain(), self._loop))
            return
        while (pump := self._wake()) is not None:
            await asyncio.wait({pump})  # unlike `await pump`, leaves it alone if this is cancelled

    async def close(self, seconds: float = GRACE) -> None:
        """`drain` with a timeout: a hook that takes longer is abandoned, and its events are dropped."""
        try:
            async with asyncio.timeout(seconds):
                await self.drain()
        except TimeoutError:
            logger.warning(
                'a hook did not finish within %g s; %d events were not delivered', seconds, len(self._waiting)
            )
            self._waiting.clear()
            if self._pump is not None:
                self._pump.cancel()
                await asyncio.wait({self._pump}, timeout=seconds)

    def outgoing(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages to send, after the hooks. What a failing hook returns is ignored."""
        for hook in self._hooks:
            if isinstance(hook, OutgoingHook):
                try:
                    messages = _checked(hook.outgoing(messages))
                except Exception as error:
                    self._report(hook, error)
        return messages

    def _is_here(self) -> bool:
        """Whether this is the loop of the run. A loop that has stopped is replaced by the running one."""
        running = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]
        if running is not None and running is not self._loop and not self._loop.is_running():
            self._loop, self._pump = running, None
        return running is self._loop

    def _wake(self) -> asyncio.Task[None] | None:
        """The task that delivers events; None if there is nothing to deliver."""
        if self._pump is not None and self._pump.done():
            self._pump = None
        if self._pump is None and self._waiting:
            self._pump = self._loop.create_task(self._deliver(), context=self._context)
        return self._pump

    async def _deliver(self) -> None:
        token = _current.set(self)
        try:
            while self._waiting:
                event = self._waiting.popleft()
                for hook in self._hooks:
                    await self._show(hook, event)
        finally:
            _current.reset(token)  # or its context would keep this alive, and this its context

    async def _show(self, hook: Hook, event: AgentEvent) -> None:
        try:
            result = hook(event)
            if inspect.isawaitable(result):
                await result
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # this task is cancelled, not just something inside the hook
            if event.kind != 'hook_failed':  # otherwise a hook that always fails would report itself endlessly
                self._report(hook, error)

    def _report(self, hook: object, error: BaseException) -> None:
        name = getattr(hook, '__qualname__', type(hook).__qualname__)
        text = f'{name}: {_described(error)}'
        logger.warning('the hook %s', text)
        self.emit(HookFailed(error=error, message=text))


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
