"""Plan mode: a plan is shown, changed by words or in an editor, and carried out as it was accepted."""

from collections.abc import Awaitable, Callable
from typing import Any

from habilis.agent.contract import Result
from habilis.cli.chat.editor import EditorError
from habilis.cli.chat.session import ChatSession
from habilis.cli.printing import Page
from habilis.cli.terminal_user import NO, YES

QUESTION = '\nCarry out this plan? [y/N/edit, or what to change] '
EDIT = frozenset({'e', 'edit'})


class Plans:
    """The plan of a chat: the last answer in plan mode, as the user has changed it."""

    def __init__(
        self,
        chat: ChatSession,
        answer: Callable[[str], Awaitable[None]],
        report: Callable[[Result[Any]], Awaitable[None]],
    ) -> None:
        """`answer` takes a turn with a message, `report` says how one has ended."""
        self._chat = chat
        self._answer = answer
        self._report = report
        self._plan = ''

    async def offer(self, result: Result[Any]) -> None:
        """Ask what to do with an answer, if it is a plan."""
        if self._chat.session.mode == 'plan' and result.ended == 'answer' and self._chat.front.is_present:
            self._plan = str(result.output)
            await self._ask()

    async def edit(self) -> None:
        """Let the user change the last plan, and ask what to do with it. Raises `HabilisError`."""
        if not self._plan:
            msg = 'there is no plan yet: /plan TASK asks for one'
            raise EditorError(msg)
        await self._change()
        await self._ask()

    async def _change(self) -> None:
        edited = (await self._chat.front.edit(self._plan)).strip()
        if edited and edited != self._plan.strip():
            self._plan = edited
            Page().text(edited)
        else:
            Page().text('the plan is as before', 'dim')

    async def _ask(self) -> None:
        """Ask until the plan is carried out, left, or changed by words."""
        while (said := (await self._chat.front.ask(QUESTION) or '').strip()).lower() in EDIT:
            await self._change()
        if said.lower() in YES:
            plan, self._plan = self._plan, ''
            with self._chat.front.working('starting'):
                done = await self._chat.session.carry_out(plan)
            await self._report(done)
        elif said.lower() not in NO:
            await self._answer(said)
