"""Other agents with the same script, each as its own documentation builds one. Measured if they are installed."""

import importlib
import importlib.metadata
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from habilis.bench.agent.steps import DONE, STEPS, TASK, code
from habilis.bench.sandbox.peers import WrongAnswer
from habilis.sandbox import Sandbox

PerStep = Callable[[], Awaitable[float]]


@dataclass(frozen=True, kw_only=True)
class LoopPeer:
    """One of them."""

    key: str
    what: str
    distribution: str
    per_step: PerStep
    """Seconds per step of a whole run."""

    def absent(self) -> str | None:
        """Why it cannot be measured, and how to get it."""
        try:
            importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return f'not installed: pip install {self.distribution}'
        return None


async def smolagents() -> float:
    """Its `CodeAgent`; the code runs in its own evaluator, in this process."""
    vendor: Any = importlib.import_module('smolagents')
    models: Any = importlib.import_module('smolagents.models')
    given = iter(range(STEPS + 1))

    def generate(self: Any, messages: Sequence[Any], **_: Any) -> Any:
        return models.ChatMessage(role='assistant', content=f'<code>\n{code(next(given))}\n</code>')

    model: Any = type('Scripted', (models.Model,), {'generate': generate})()
    agent: Any = vendor.CodeAgent(tools=[], model=model, max_steps=STEPS + 1, verbosity_level=vendor.LogLevel.OFF)
    started = time.perf_counter()
    answer = agent.run(TASK)
    return _per_step(started, answer)


async def pydantic_ai() -> float:
    """Its agent with one tool, which runs the code in our sandbox: what one would build without Habilis' loop."""
    vendor: Any = importlib.import_module('pydantic_ai')
    messages: Any = importlib.import_module('pydantic_ai.messages')
    function: Any = importlib.import_module('pydantic_ai.models.function')
    given = iter(range(STEPS + 1))

    async def answer(_history: Any, _info: Any) -> Any:
        number = next(given)
        if number == STEPS:
            return messages.ModelResponse(parts=[messages.TextPart(DONE)])
        call = messages.ToolCallPart('python', {'code': code(number)}, tool_call_id=str(number))
        return messages.ModelResponse(parts=[call])

    agent: Any = vendor.Agent(function.FunctionModel(answer))
    started = time.perf_counter()
    async with await Sandbox.create() as sandbox:

        async def python(code: str) -> str:
            """Run Python code; gives back what it printed."""
            return (await sandbox.run(code)).stdout

        agent.tool_plain(python)
        result = await agent.run(TASK)
    return _per_step(started, result.output)


def _per_step(started: float, answer: object) -> float:
    taken = time.perf_counter() - started
    if answer != DONE:
        msg = f'the run gave {answer!r}'
        raise WrongAnswer(msg)
    return taken / STEPS


LOOP_PEERS = (
    LoopPeer(key='smolagents', what="smolagents' CodeAgent", distribution='smolagents', per_step=smolagents),
    LoopPeer(
        key='pydantic_ai',
        what='a pydantic-ai agent around our sandbox',
        distribution='pydantic-ai-slim',
        per_step=pydantic_ai,
    ),
)
