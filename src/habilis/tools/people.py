"""Speaking to the person who gave the task."""

import inspect
from collections.abc import Awaitable, Callable
from typing import cast

from habilis.sandbox.clock import clock_stopped
from habilis.tools.attempts import on_thread
from habilis.tools.contract import NeedsAnswer
from habilis.tools.logs import tell
from habilis.tools.tool import tool
from habilis.tools.toolset import Toolset

AskPerson = Callable[[str], 'str | Awaitable[str]']
"""Takes a question and gives the answer. A plain function may block: it runs on a thread of its own."""


def people_toolset(ask: AskPerson | None = None, *, enabled: bool = True) -> Toolset:
    """The toolset `people`: `ask_user` waits for an answer, `notify_user` goes on at once.

    Without `ask`, a question raises `NeedsAnswer`: the run ends with it, and goes on when somebody has answered.
    """

    @tool(as_sync=True, idempotent=False)
    async def ask_user(question: str) -> str:
        """Ask the user, and wait for the answer. Only for what you cannot find out yourself."""
        if ask is None:
            raise NeedsAnswer(question)
        tell('question', question)
        with clock_stopped():
            return await _answer(ask, question)

    @tool
    def notify_user(text: str) -> None:
        """Tell the user something, and go on."""
        tell('notice', text)

    return Toolset('people', [ask_user, notify_user], enabled=enabled)


async def _answer(ask: AskPerson, question: str) -> str:
    if inspect.iscoroutinefunction(ask):
        return str(await cast('Awaitable[str]', ask(question)))
    answer = await on_thread(lambda: ask(question))
    return str(await answer if inspect.isawaitable(answer) else answer)
