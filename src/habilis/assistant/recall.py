"""What a message gets from the memory. All messages before it stay as the model has read them."""

from collections.abc import Iterable

from habilis.memory import Memory
from habilis.memory.context import MemoryContext


class Recall:
    """Chooses what a message gets, and keeps what this conversation was given."""

    def __init__(self, memory: Memory, session: str, *, given: Iterable[str] = ()) -> None:
        self._memory = memory
        self.session = session
        self.given = list(given)
        """Ids of what the model has been given. Nothing is given twice."""

        self.last: MemoryContext | None = None
        """What the last message got."""

    async def choose(self, message: str, *, budget: int) -> MemoryContext:
        """What the memory has for a message, in at most `budget` tokens."""
        self.last = await self._memory.context_for(message, budget, session=self.session, known=self.given)
        self.given += self.last.ids
        return self.last
