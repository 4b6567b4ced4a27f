"""Other agents with the same script, built as their documentation shows. Measured if they are installed."""

import importlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.agent.steps import DONE, STEPS, TASK, code
from benchmarks.installation import PeerError, why_missing
from habilis.sandbox import Sandbox


@dataclass(frozen=True, kw_only=True)
class AgentPeer:
    """Another agent."""

    key: str
    label: str
    distribution: str
    step: Callable[[], Awaitable[float]]
    """Seconds per step of a whole run."""

    def unavailable(self) -> str | None:
        """Why it cannot be measured, and how to install it."""
        return why_missing(self.distribution)


async def smolagents() -> float:
    """Its `CodeAgent`, which runs the code in its own evaluator in this process."""
    vendor: Any = importlib.import_module('smolagents')
    models: Any = importlib.import_module('smolagents.models')
    numbers = iter(range(STEPS + 1))

    def generate(self: Any, messages: Sequence[Any], **_: Any) -> Any:
        return models.ChatMessage(role='assistant', content=f'<code>\n{code(next(numbers))}\n</code>')

    model: Any = type('Scripted', (models.Model,), {'generate': generate})()
    agent: Any = vendor.CodeAgent(tools=[], model=model, max_steps=STEPS + 1, verbosity_level=vendor.LogLevel.OFF)
    started = time.perf_counter()
    answer = agent.run(TASK)
    return _per_step(started, answer)


async def pydantic_ai() -> float:
    """Its agent with one tool that runs the code in a Habilis sandbox, without the loop of Habilis."""
    vendor: Any = importlib.import_module('pydantic_ai')
    messages: Any = importlib.import_module('pydantic_ai.messages')
    function: Any = importlib.import_module('pydantic_ai.models.function')
    numbers = iter(range(STEPS + 1))

    async def answer(_history: Any, _info: Any) -> Any:
        number = next(numbers)
        if number == STEPS:
            return messages.ModelResponse(parts=[messages.TextPart(DONE)])
        call = messages.ToolCallPart('python', {'code': code(number)}, tool_call_id=str(number))
        return messages.ModelResponse(parts=[call])

    agent: Any = vendor.Agent(function.FunctionModel(answer))
    started = time.perf_counter()
    async with await Sandbox.create() as sandbox:

        async def python(code: str) -> str:
            """Run Python code and return its output."""
            return (await sandbox.run(code)).stdout

        agent.tool_plain(python)
        result = await agent.run(TASK)
    return _per_step(started, result.output)


def _per_step(started: float, answer: object) -> float:
    taken = time.perf_counter() - started
    if answer != DONE:
        msg = f'the run returned {answer!r}'
        raise PeerError(msg)
    return taken / STEPS


AGENT_PEERS = (
    AgentPeer(key='smolagents', label="smolagents' CodeAgent", distribution='smolagents', step=smolagents),
    AgentPeer(
        key='pydantic_ai',
        label='a pydantic-ai agent with our sandbox',
        distribution='pydantic-ai-slim',
        step=pydantic_ai,
    ),
)
