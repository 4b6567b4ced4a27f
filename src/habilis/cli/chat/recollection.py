"""What a message gets from the memory. It is added to the message, so that all before it stays as the model read it."""

import re
from collections.abc import Iterable

from habilis.memory import Memory
from habilis.memory.context import MemoryContext

HEADING = 'From the memory:'
_ADDED = re.compile(rf'\s+{HEADING}\s.*', re.DOTALL)
BUDGET = 800
SMALL_BUDGET = 200
"""Tokens. A small model reads slowly, and is easily distracted."""


class Recollection:
    """Chooses what a message gets, and keeps what this conversation was given."""

    def __init__(self, memory: Memory, session: str, *, given: Iterable[str] = ()) -> None:
        self._memory = memory
        self.session = session
        self.given = list(given)
        """Ids of what the model has been given. Nothing is given twice."""

        self.last: MemoryContext | None = None
        """What the last message got."""

    async def add_to(self, message: str, *, budget: int) -> str:
        """The message with what the memory has for it."""
        self.last = await self._memory.context_for(message, budget, session=self.session, known=self.given)
        self.given += self.last.ids
        return f'{message}\n\n{HEADING}\n{self.last.text}' if self.last.items else message


def as_said(task: str) -> str:
    """The message as the user wrote it, also of a title in one line."""
    return _ADDED.sub('', task)
