"""Running an agent with a script for those who watch it."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from habilis.agent.agent import Agent
from habilis.agent.contract import Result
from habilis.agent.events import AgentEvent, Event
from habilis.agent.hooks.dispatch import Hook
from habilis.models.contract import Message, Model
from habilis.models.scripted import Scripted, ScriptedModel

E = TypeVar('E', bound=Event)


def code(source: str) -> str:
    """A reply with code."""
    return f'```python\n{source}\n```'


ANSWER = code('result = 6 * 7\nfinal_answer(result)')


class Seen:
    """A hook that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    def __call__(self, event: AgentEvent) -> None:
        self.events.append(event)

    @property
    def texts(self) -> list[str]:
        """What each event said."""
        return [event.text for event in self.events]

    @property
    def kinds(self) -> list[str]:
        """What each event was."""
        return [event.kind for event in self.events]

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class."""
        return [event for event in self.events if isinstance(event, kind)]


def agent(model: Model | Sequence[Scripted] | Callable[[Sequence[Message]], Scripted], **options: Any) -> Agent[Any]:
    """An agent whose replies come from a script."""
    return Agent[Any](model if isinstance(model, Model) else ScriptedModel(model), **options)


async def watch(model: Model | Sequence[Scripted], *hooks: Hook, task: str = 'x', **options: Any) -> Result[Any]:
    """One run, watched."""
    async with agent(model, **options) as working:
        return await working.run(task, hooks=hooks)
