"""Sessions with scripted models, and one memory and journal per test."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from habilis.agent.contract import Waiting
from habilis.assistant import Session, SessionEvent
from habilis.core.folders import cache_folder
from habilis.memory import Memory
from habilis.models.scripted import Script, Scripted, ScriptedModel
from habilis.tools import ApprovalRequest
from tests.place import Place

Open = Callable[..., Session]


class Page:
    """A view without a terminal: keeps what it is shown, and answers from a list."""

    is_present = True

    def __init__(self, *answers: Any) -> None:
        self.events: list[SessionEvent] = []
        self.questions: list[object] = []
        self._answers = list(answers)

    def show(self, event: SessionEvent) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        """The kinds of events, in order."""
        return [event.kind for event in self.events]

    async def answer(self, question: str) -> str | None:
        return self._next(question)

    async def approve(self, request: ApprovalRequest) -> bool:
        return self._next(request)

    async def may_repeat(self, call: Waiting) -> bool:
        return self._next(call)

    def _next(self, question: object) -> Any:
        self.questions.append(question)
        return self._answers.pop(0)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A folder with settings of its own, and the usual cache: building the interpreter takes long."""
    cache = cache_folder()
    here = Place(tmp_path, monkeypatch)
    monkeypatch.setenv('HABILIS_CACHE', os.fspath(cache))
    return here


@pytest.fixture
async def memory(place: Place) -> AsyncGenerator[Memory]:
    """The memory of the user."""
    async with Memory(place.folder / 'memory.db') as opened:
        yield opened


@pytest.fixture
def session(place: Place, memory: Memory) -> Open:
    """Makes sessions; their model is scripted."""

    def make(replies: Sequence[Scripted] | Script, **options: Any) -> Session:
        return Session(ScriptedModel(replies), memory=memory, journal=place.folder / 'runs.db', **options)

    return make


def sent(session: Session, number: int) -> list[str]:
    """The texts of a request of the session's model, without the system prompt and the date."""
    assert isinstance(session.model, ScriptedModel)
    today = f'\n\nToday is {datetime.now().astimezone().date().isoformat()}.'
    return [message.text.replace(today, '') for message in session.model.requests[number].messages[1:]]


async def said(memory: Memory, session: str | None = None) -> list[tuple[str, str]]:
    """The turns of the memory."""
    return [(turn.role, turn.text) for turn in await memory.turns(session)]
