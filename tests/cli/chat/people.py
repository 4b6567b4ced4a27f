"""A person who chats, without a terminal; and a chat with a scripted model."""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Any

import pytest

from habilis.assistant import Mode
from habilis.cli.chat import session as chat_session
from habilis.cli.chat.app import ChatApp
from habilis.cli.chat.editor import edit_text
from habilis.cli.run.request import CommandRequest
from habilis.memory import Memory
from habilis.models.scripted import Script, Scripted, ScriptedModel


class Person:
    """Says these messages, and answers questions. A function among the messages is called instead."""

    def __init__(self, *messages: str | Callable[[], Any], answers: Sequence[str | None] = ()) -> None:
        self.is_present = True
        self.on_stop: Callable[[], bool] = lambda: False
        self.on_message: Callable[[str], bool] = lambda message: False
        self.questions: list[str] = []
        self.place: Callable[[], str] = str
        self.places: list[str] = []
        self.places_of_questions: list[str] = []
        self.kept: list[str] = []
        self.keys = ''
        self.messages = list(messages)
        self._answers = list(answers)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        yield

    async def read(self) -> str | None:
        while self.messages:
            message = self.messages.pop(0)
            if isinstance(message, str):
                return message
            message()
        return None

    def put_back(self, message: str) -> None:
        self.kept.append(message)

    async def ask(self, question: str) -> str | None:
        self.questions.append(question)
        self.places_of_questions.append(self.place())
        return self._answers.pop(0)

    async def edit(self, text: str) -> str:
        return edit_text(text)

    def drop_question(self) -> None:
        pass

    @contextlib.contextmanager
    def working(self, phase: str) -> Generator[None]:
        yield

    def watch(self, rows: Callable[[], Sequence[str]]) -> bool:
        self.rows = rows
        return True

    def describe(self, place: Callable[[], str]) -> None:
        self.place = place
        self.places.append(place())

    def ring(self) -> None:
        pass

    def offer(self, commands: Mapping[str, str]) -> None:
        pass

    def use_keys(self, keys: str) -> None:
        self.keys = keys

    def echo(self, message: str) -> None:
        print(f'> {message}')

    def stop_when(self, condition: Callable[[], bool]) -> None:
        """Press Esc as soon as this is so."""

        def press() -> None:
            if not (condition() and self.on_stop()):
                loop.call_later(0.05, press)

        loop = asyncio.get_running_loop()
        loop.call_soon(press)


class Chats:
    """Starts chats with one scripted model, and keeps what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model = ScriptedModel([])

        async def choose(*_: object) -> ScriptedModel:
            return self.model

        async def usable(*_: object) -> None:
            return None

        monkeypatch.setattr(chat_session, 'choose_model', choose)
        monkeypatch.setattr(chat_session, 'why_unusable', usable)

    async def chat(
        self,
        person: Person,
        replies: Sequence[Scripted] | Script,
        *,
        resume: str | None = None,
        mode: Mode | None = None,
        **options: Any,
    ) -> int:
        """Let a person chat to the end."""
        self.model = ScriptedModel(replies)
        return await ChatApp(person, CommandRequest(**options), resume=resume, mode=mode).run()

    def sent(self, number: int) -> list[str]:
        """The messages of a request, without the system prompt, the date and the folder."""
        return [re.sub(r'\n\nToday is .*', '', message.text) for message in self.model.requests[number].messages[1:]]


async def turns() -> list[tuple[str, str]]:
    """All turns that are in the memory."""
    async with Memory() as memory:
        return [(turn.role, turn.text) for turn in await memory.turns()]
