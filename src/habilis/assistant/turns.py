"""One turn at a time, what is asked when it goes on, and its events as a stream."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from typing import Any, cast

from habilis.agent.contract import Result, Waiting
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.hooks.stream import stream_events
from habilis.assistant.contract import SessionEvent, View
from habilis.core.errors import RunBusy
from habilis.journal.index import name_of

ASK_USER = 'ask_user'
"""The tool of `people_toolset` that asks."""

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


async def settle_doubts(
    doubts: Sequence[Waiting], view: View, answer: Callable[..., Coroutine[object, object, None]]
) -> bool:
    """Ask about calls that were under way when their turn was cut short. False if one is not to be repeated."""
    for doubt in doubts:
        is_question = name_of(doubt.path).partition('(')[0] == ASK_USER  # nobody has answered it
        if not (is_question or await view.may_repeat(doubt)):
            return False
        await answer({'again': True}, path=doubt.path)
    return True


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
