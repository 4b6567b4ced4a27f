"""One turn at a time, and its events as a stream."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any, cast

from habilis.agent.contract import Result
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.hooks.stream import stream_events
from habilis.assistant.contract import SessionEvent
from habilis.core.errors import RunBusy

Show = Callable[[SessionEvent], None]


class OneAtATime:
    """Whether a conversation is in the middle of a turn."""

    def __init__(self) -> None:
        self.is_busy = False

    @contextlib.contextmanager
    def turn(self, session: str) -> Generator[None]:
        """Be busy meanwhile. Raises `RunBusy` if it is already."""
        self.check(session)
        self.is_busy = True
        try:
            yield
        finally:
            self.is_busy = False

    def check(self, session: str) -> None:
        """Raise `RunBusy` in the middle of a turn."""
        if self.is_busy:
            msg = f'the conversation {session!r} is in the middle of a turn: wait for it, or stop it'
            raise RunBusy(msg)


def stream_turn(shows: list[Show], take: Callable[[], Awaitable[Result[Any]]]) -> AsyncGenerator[SessionEvent, None]:
    """Take a turn whose events go to all of `shows`, and yield them."""

    async def work(hook: Hook) -> Result[Any]:
        show = cast('Show', hook)
        shows.append(show)
        try:
            return await take()
        finally:
            shows.remove(show)

    return cast('AsyncGenerator[SessionEvent, None]', stream_events(work))
