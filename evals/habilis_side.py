"""Habilis, as the evaluation runs it."""

import time
from typing import Any

from evals.outcome import Outcome
from evals.tasks import Task
from habilis.agent import Agent, RunLimits
from habilis.core.errors import HabilisError
from habilis.models import Model

SECONDS = 240


async def solve(model: Model, task: Task, hooks: tuple[Any, ...] = ()) -> Outcome:
    """One task, from nothing."""
    agent = Agent(
        model,
        output_type=task.kind,
        tools=task.tools,
        limits=RunLimits(steps=8, seconds=SECONDS),
        hooks=hooks,
    )
    started = time.perf_counter()
    try:
        async with agent:
            result = await agent.run(task.text, variables=task.variables)
    except HabilisError as error:
        return Outcome(
            task=task.id, solved=False, answer=f'{type(error).__name__}: {error}', seconds=time.perf_counter() - started
        )
    return Outcome(
        task=task.id,
        solved=result.ended == 'answer' and task.solved_by(result.output),
        answer=repr(result.output) if result.ended == 'answer' else result.ended,
        seconds=time.perf_counter() - started,
        steps=len(result.steps),
        tokens=result.usage.output_tokens,
    )
