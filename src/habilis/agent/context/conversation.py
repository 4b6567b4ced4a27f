"""The conversation of one run: what was said, and what of it goes out."""

from collections.abc import Sequence
from dataclasses import replace

from habilis.agent.context.compaction import KEPT_STEPS, Turn, compact, earlier_turn
from habilis.agent.context.prompt import without_stop
from habilis.models.contract import Message


class Conversation:
    """Grows at its end only, so that what was sent stays the beginning of what will be sent."""

    def __init__(self, system: str, history: Sequence[Message] = ()) -> None:
        self.system = system
        self._turns: tuple[Turn, ...] = tuple(earlier_turn(message) for message in history if message.role != 'system')

    def add(self, message: Message, *, by_user: bool = False) -> None:
        """The next turn. What a person wrote is never shortened, also where this is the history of another run."""
        if message.role == 'user' and not by_user:
            message = replace(message, by_agent=True)
        self._turns = (*self._turns, Turn(message=message, by_user=by_user))

    @property
    def messages(self) -> tuple[Message, ...]:
        """All turns, without the system prompt."""
        return tuple(turn.message for turn in self._turns)

    def outgoing(self, *, system: str | None = None, extra: str = '') -> tuple[Message, ...]:
        """What is sent: with the system prompt first, marks for the provider's cache, and `extra` for this once.

        Another `system` prompt is for a step that cannot end the run.
        """
        turns = [replace(turn.message, cache=False) if turn.message.cache else turn.message for turn in self._turns]
        if system is not None:
            turns = [
                replace(message, text=without_stop(message.text)) if turn.by_user else message
                for turn, message in zip(self._turns, turns, strict=True)
            ]
        if turns:
            turns[-1] = replace(turns[-1], cache=True)
        if extra:
            turns.append(Message(role='user', text=extra))
        return (Message(role='system', text=self.system if system is None else system, cache=True), *turns)

    def start_over(self, note: str) -> None:
        """Forget what this run did, and say why, if there is a `note`. The variables of the sandbox stay."""
        self._turns = tuple(turn for turn in self._turns if turn.by_user or turn.earlier)
        if note:
            self.add(Message(role='user', text=note))

    def compact(self, keep: int = KEPT_STEPS) -> bool:
        """Make it shorter. False if that was not possible."""
        shorter = compact(self._turns, keep=keep)
        changed = shorter != self._turns
        self._turns = shorter
        return changed
