"""The user of the chat, for all who ask at a terminal: approvals, questions of the model, downloads."""

import asyncio
import threading

from habilis.cli.chat.front import FrontEnd
from habilis.cli.terminal_user import TerminalUser


class ChatUser(TerminalUser):
    """Asks in the prompt of the chat."""

    def __init__(self, front: FrontEnd) -> None:
        super().__init__(is_present=front.is_present)
        self._front = front
        self._loop = asyncio.get_running_loop()
        self._one = threading.Lock()
        self._turn = 0

    def drop_questions(self) -> None:
        """Answer the questions of this turn with None, those that wait too."""
        self._turn += 1
        self._front.drop_question()

    def ask(self, prompt: str) -> str | None:
        """Read one line. Blocks the thread that it is called on, which must not be that of the event loop."""
        turn = self._turn
        with self._one:
            if not self.is_present or turn != self._turn:
                return None
            return asyncio.run_coroutine_threadsafe(self._front.ask(prompt), self._loop).result()
