"""A run of an agent with tools, recorded in memory."""

from typing import Any

from habilis.agent import Agent
from habilis.agent.contract import RunLimits
from habilis.journal import MemoryStore
from habilis.models import ScriptedModel
from habilis.models.contract import Reply
from habilis.tools import Deny, GateCall, tool


def block(code: str) -> str:
    """Code in a fence."""
    return f'```python\n{code}\n```'


@tool
def double(number: int) -> int:
    """Twice as much."""
    return 2 * number


@tool
def fail(reason: str) -> None:
    """Never works."""
    raise ValueError(reason)


@tool(side='model')
def weather(city: str) -> str:
    """For the model."""
    return f'sunny in {city}'


@tool(needs_approval=True)
def send(text: str) -> str:
    """Needs somebody."""
    return f'sent {text}'


def no_thirteen(call: GateCall) -> Deny | None:
    """A gate."""
    return Deny('an unlucky number') if call.arguments.get('number') == 13 else None


async def record_run(*replies: str | Reply, functions: bool = False, steps: int = 20, **options: Any) -> MemoryStore:
    """Run an agent with these replies as the run `r`."""
    store = MemoryStore()
    model = ScriptedModel(list(replies), functions=functions)
    tools = [double, fail, weather, send]
    async with Agent(model, tools=tools, journal=store, gates=[no_thirteen], limits=RunLimits(steps=steps)) as agent:
        await agent.run('Do it', run_id='r', **options)
    return store
