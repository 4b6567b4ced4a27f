"""The conversation of one run, and the messages that are sent."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from habilis.agent.context.compaction import DEFAULT, AuthoredMessage, Compaction, compact, earlier_turn
from habilis.agent.context.prompt import as_sent
from habilis.models.contract import Message
from habilis.models.files import Image
from habilis.models.tokens import count_message_tokens


class Conversation:
    """Append-only while possible: what was sent stays a prefix of what is sent next, for prompt caches."""

    def __init__(self, system: str, history: Sequence[Message] = ()) -> None:
        self.system = system
        self._task = ''
        self._task_notes = ('', '')
        self._turns: tuple[AuthoredMessage, ...] = tuple(
            earlier_turn(message) for message in history if message.role != 'system'
        )

    def add(self, message: Message, *, by_user: bool = False, note: str = '') -> None:
        """Append a message. What a person wrote is never shortened, not even as the history of a later run.

        A `note` at its end, of the policy, is for the next step only: a digest leaves it out.
        """
        if message.role == 'user' and not by_user:
            message = replace(message, by_agent=True)
        self._turns = (*self._turns, AuthoredMessage(message=message, by_user=by_user, note=note))

    def add_task(
        self,
        text: str,
        images: tuple[Image, ...] = (),
        *,
        memory: str = '',
        situation: str = '',
        note: str,
        note_without_stop: str,
    ) -> str:
        """Append the task with the note of the policy below it, which differs in steps that cannot end the run.

        Returns the message as it is sent.
        """
        self._task, self._task_notes = text, (note, note_without_stop)
        message = Message(role='user', text=text, images=images, memory=memory, situation=situation, note=note)
        self.add(message, by_user=True)
        return as_sent(message).text

    def change_task_notes(self, *, note: str, note_without_stop: str) -> None:
        """Replace the note below the task."""
        before, self._task_notes = self._task_notes[0], (note, note_without_stop)
        self._turns = tuple(
            replace(turn, message=replace(turn.message, note=note))
            if turn.by_user and (turn.message.text, turn.message.note) == (self._task, before)
            else turn
            for turn in self._turns
        )

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages but the system prompt."""
        return tuple(turn.message for turn in self._turns)

    def outgoing(self, *, system: str | None = None, extra: str = '') -> tuple[Message, ...]:
        """The messages to send: system prompt first, with cache marks, and `extra` for this request only.

        Another `system` prompt is for a step that cannot end the run.
        """
        turns = [replace(turn.message, cache=False) if turn.message.cache else turn.message for turn in self._turns]
        if system is not None:
            turns = [
                self._without_stop(message) if turn.by_user else message
                for turn, message in zip(self._turns, turns, strict=True)
            ]
        turns = [as_sent(message) for message in turns]
        if turns:
            turns[-1] = replace(turns[-1], cache=True)
        if extra:
            turns.append(Message(role='user', text=extra))
        return (Message(role='system', text=self.system if system is None else system, cache=True), *turns)

    def _without_stop(self, message: Message) -> Message:
        note, other = self._task_notes
        return replace(message, note=other) if note and message.note == note else message

    def forget_steps(self, note: str) -> None:
        """Remove the steps of this run, and add the `note`, if there is one. The variables of the sandbox stay."""
        self._turns = tuple(turn for turn in self._turns if turn.by_user or turn.earlier)
        if note:
            self.add(Message(role='user', text=note))

    def forget_reply(self, note: str) -> None:
        """Remove the last reply and what answered it, and add the `note`, if there is one."""
        last = max(number for number, turn in enumerate(self._turns) if turn.message.role == 'assistant')
        self._turns = self._turns[:last]
        if note:
            self.add(Message(role='user', text=note))

    def tokens_to_save(self) -> int:
        """How many tokens shorter `compact` can make it: few steps may be long."""
        shorter = compact(self._turns, Compaction(keep=1))
        return count_message_tokens(self.messages) - count_message_tokens([turn.message for turn in shorter])

    def compact(self, *ways: Compaction, fits: Callable[[], bool] = lambda: True) -> bool:
        """Shorten the earlier steps in the first of these ways after which all `fits`, else in the last of them.

        False if none makes it shorter.
        """
        before = self._turns
        for how in ways or (DEFAULT,):
            self._turns = compact(before, how)
            if fits():
                break
        return self._turns != before
