"""What a message gets from the memory. All messages before it stay as the model has read them."""

from collections.abc import Sequence

from habilis.memory import Memory
from habilis.memory.context import MemoryContext
from habilis.memory.entries import plain_words
from habilis.models.contract import Message


class Recall:
    """Chooses what a message gets: nothing that the model sees already, and all that it no longer sees."""

    def __init__(self, memory: Memory, session: str) -> None:
        self._memory = memory
        self.session = session
        self.last: MemoryContext | None = None
        """What the last message got."""

    async def choose(self, message: str, messages: Sequence[Message], *, budget: int) -> MemoryContext:
        """What the memory has for a message after `messages`, in at most `budget` tokens."""
        visible = '\n'.join(f'{one.text}\n{one.memory}' for one in messages)
        seen_from = await self._first_seen(f'{visible}\n{message}')
        self.last = await self._memory.context_for(
            message, budget, session=self.session, seen_from=seen_from, visible=visible
        )
        return self.last

    async def _first_seen(self, visible: str) -> int:
        """Position of the first turn from which on the model sees all that the user has said."""
        shown, first = plain_words(visible), 1
        for turn in reversed(await self._memory.turns(self.session)):
            if turn.role == 'user' and plain_words(turn.text) not in shown:
                break
            first = turn.position
        return first
