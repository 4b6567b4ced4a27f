"""`run_task`: the flow that gives one task to an agent which every process can load by its name."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from habilis.agent import Agent
from habilis.agent.contract import Result
from habilis.core.dataclass_codec import pack_or_repr
from habilis.flows.contract import FlowError
from habilis.flows.definitions import flow
from habilis.flows.targets import load_name
from habilis.journal.values import fingerprint

RUN_TASK = f'{__name__}:run_task'

MakeAgent = Callable[[object], Awaitable[Agent]]
"""Makes an agent of its options. Named as `module:name` in the place of an agent."""


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """What an agent made of one task. Plain data, without the steps: they are in the journal."""

    output: object
    """The answer as JSON; its repr if it is no plain data."""

    ended: str
    """`answer`, `question`, `approval`, or the limit."""

    steps: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0


@flow
async def run_task(app: str, task: str, variables: dict[str, object], options: object = None) -> TaskResult:
    """Give a task to the agent named `app`, as `module:name`; or to the one that the function of that name makes."""
    agent = await _agent(app, options)
    return task_result(await agent.run(task, variables=variables))


def task_result(result: Result[object]) -> TaskResult:
    """The result of a run without its steps."""
    return TaskResult(
        output=pack_or_repr(result.output),
        ended=result.ended,
        steps=len(result.steps),
        requests=result.usage.requests,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost=result.cost,
        seconds=round(result.seconds, 3),
    )


_agents: dict[tuple[str, str, int], 'asyncio.Task[Agent]'] = {}
"""The agents of this process, each made once and used by all runs of its event loop."""


async def _agent(app: str, options: object) -> Agent:
    key = (app, fingerprint(options), id(asyncio.get_running_loop()))
    if key not in _agents or (_agents[key].done() and (_agents[key].cancelled() or _agents[key].exception())):
        _agents[key] = asyncio.create_task(_make(app, options))
    return await asyncio.shield(_agents[key])


async def _make(app: str, options: object) -> Agent:
    found = load_name(app)
    if callable(found) and not isinstance(found, Agent):
        found = await cast('MakeAgent', found)(options)
    if not isinstance(found, Agent):
        msg = f'{app} is of type {type(found).__name__}, not an Agent'
        raise FlowError(msg)
    return cast('Agent', found)
