"""Running an agent with a script for those who watch it."""

from collections.abc import Callable, Sequence
from typing import Any

from habilis.agent.agent import Agent
from habilis.agent.contract import Result
from habilis.agent.hooks.dispatch import Hook
from habilis.core.events import Event
from habilis.models.contract import Message, Model
from habilis.models.scripted import Scripted, ScriptedModel


def code(source: str) -> str:
    """A reply with code."""
    return f'```python\n{source}\n```'


ANSWER = code('result = 6 * 7\nfinal_answer(result)')


class Seen:
    """A hook that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def texts(self) -> list[str]:
        """What each event said."""
        return [event.text for event in self.events]

    @property
    def kinds(self) -> list[str]:
        """What each event was."""
        return [event.kind for event in self.events]

    def of(self, kind: str) -> list[Event]:
        """The events of one kind."""
        return [event for event in self.events if event.kind == kind]


def agent(model: Model | Sequence[Scripted] | Callable[[Sequence[Message]], Scripted], **options: Any) -> Agent[Any]:
    """An agent whose replies come from a script."""
    return Agent[Any](model if isinstance(model, Model) else ScriptedModel(model), **options)


async def watch(model: Model | Sequence[Scripted], *hooks: Hook, task: str = 'x', **options: Any) -> Result[Any]:
    """One run, watched."""
    async with agent(model, **options) as working:
        return await working.run(task, hooks=hooks)
