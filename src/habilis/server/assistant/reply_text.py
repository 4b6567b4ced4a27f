"""What a turn says, for front-ends that show text alone: the words of the model and its answer, and the work apart."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from habilis.agent import events
from habilis.agent.context.output import as_text
from habilis.agent.contract import Result
from habilis.agent.hooks.questions import is_question
from habilis.agent.hooks.reply_stream import ReplyStream
from habilis.assistant import SessionEvent
from habilis.sandbox.contract import Cell


class Said(NamedTuple):
    """A piece of text: what the model says to the user, what it thinks, or code with its output."""

    kind: Literal['answer', 'thinking', 'cell']
    text: str


class ReplyText:
    """Takes the events of a turn, and returns what they say."""

    def __init__(self) -> None:
        self._reply = ReplyStream()
        self._words = ''
        """What the model has said since its last code: the answer, if nothing follows."""

        self._has_spoken = False

    def feed(self, event: SessionEvent) -> Iterator[Said]:
        """The pieces of an event. Those of subagents are not shown."""
        if event.parent:
            return
        if isinstance(event, events.TextEvent):
            yield from self._speak(piece.text for piece in self._reply.feed(event.delta.text) if piece.kind == 'prose')
        elif isinstance(event, events.ThinkingEvent):
            yield Said('thinking', event.delta.thinking)
        elif isinstance(event, events.ModelReplied):
            yield from self._speak(piece.text for piece in self._reply.finish() if piece.kind == 'prose')
            self._reply = ReplyStream()
        elif isinstance(event, events.CodeEvent):
            self._words = ''
            yield Said('cell', f'\n```python\n{event.code.strip()}\n```\n')
        elif isinstance(event, events.CellFinished) and (shown := cell_text(event.cell)[:2000]):
            yield Said('cell', f'\n```text\n{shown}\n```\n')

    def _speak(self, pieces: Iterator[str]) -> Iterator[Said]:
        for text in pieces:
            yield Said('answer', f'\n\n{text}' if self._has_spoken and not self._words else text)
            self._words += text
            self._has_spoken = True

    def end(self, result: Result[Any]) -> Iterator[Said]:
        """What is still to be said: the answer, unless the model has just said it, or what the run waits for."""
        said = self._words.strip()
        if result.ended == 'answer':
            answer = '' if result.output is None else as_text(result.output)
        elif result.question or result.waiting:
            answer = result.question or f'Waiting for a person: {", ".join(one.question for one in result.waiting)}'
        else:
            answer = result.question or f'Stopped: {result.ended}'
        if answer.strip() and answer.strip() != said:
            yield Said('answer', f'\n\n{answer}' if self._has_spoken else answer)


def cell_text(cell: Cell) -> str:
    """What a cell has printed, and its value or its error."""
    if cell.error is not None and is_question(cell.error.message):  # the answer asks it
        return cell.stdout.strip()
    return f'{cell.stdout}{cell.error or cell.text or ""}'.strip()
