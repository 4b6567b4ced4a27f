"""The toolset `people`: questions and messages to the user."""

import functools
from collections.abc import Awaitable, Callable

from habilis.sandbox.contract import Side
from habilis.sandbox.host.deadline import deadline_paused
from habilis.tools.attempts import call
from habilis.tools.contract import NeedsAnswer
from habilis.tools.events import NoticeEvent, QuestionEvent
from habilis.tools.logs import emit
from habilis.tools.tool import tool
from habilis.tools.toolset import Toolset

AskPerson = Callable[[str], 'str | Awaitable[str | None] | None']
"""Takes a question and returns the answer, or None. A plain function may block: it runs on a thread."""

NO_ANSWER = 'The user gave no answer.'


def people_toolset(ask: AskPerson | None = None, *, enabled: bool = True, side: Side = 'code') -> Toolset:
    """The toolset `people`: `ask_user` waits for an answer, `notify_user` does not.

    Args:
        ask: asks the person. Without it, a question raises `NeedsAnswer`: the run stops with the question, and is
            resumed with the answer.
        enabled: whether it is enabled at the start.
        side: who may call its tools, as for `@tool`.
    """

    @tool(as_sync=True, read_only=True, idempotent=False, side=side)
    async def ask_user(question: str) -> str:
        """Ask the user, and wait for the answer. Only for what you cannot find out yourself."""
        if ask is None:
            raise NeedsAnswer(question)
        answer = await ask_person(ask, question)
        return NO_ANSWER if answer is None else answer

    @tool(side=side, read_only=True)
    def notify_user(text: str) -> None:
        """Tell the user something, and go on."""
        emit(lambda call: NoticeEvent(call=call, message=text))

    return Toolset('people', [ask_user, notify_user], enabled=enabled, for_subagents=False)


async def ask_person(ask: AskPerson, question: str) -> str | None:
    """The answer of the person, from inside a tool; None for no answer."""
    emit(lambda call: QuestionEvent(call=call, question=question))
    with deadline_paused():
        answer = await call(functools.partial(ask, question))
    return None if answer is None else str(answer)
