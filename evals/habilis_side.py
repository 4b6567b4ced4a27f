"""Habilis, as the evaluation runs it."""

import time

from evals.outcomes import Outcome
from evals.tasks import Task
from habilis import Agent, HabilisError, RunLimits, Sandbox
from habilis.models import Model

STEPS = 8


async def solve(model: Model, task: Task, seconds: float) -> Outcome:
    """Solve one task with a new agent in a new sandbox; tests run in the same sandbox afterwards."""
    started = time.perf_counter()
    async with await Sandbox.create() as sandbox:
        agent = Agent(
            model,
            output_type=task.kind,
            tools=task.tools,
            sandbox=sandbox,
            limits=RunLimits(steps=STEPS, seconds=seconds),
        )
        try:
            async with agent:
                result = await agent.run(task.text, variables=task.variables)
        except HabilisError as error:
            return Outcome(
                set=task.set,
                task=task.id,
                side='habilis',
                solved=False,
                answer=f'{type(error).__name__}: {error}',
                seconds=time.perf_counter() - started,
            )
        taken = time.perf_counter() - started
        answer = repr(result.output) if result.ended == 'answer' else result.ended
        if task.tests:
            failure = await run_tests(sandbox, task)
            solved, answer = not failure, failure or answer
        else:
            solved = result.ended == 'answer' and task.accepts(result.output)
    return Outcome(
        set=task.set,
        task=task.id,
        side='habilis',
        solved=solved,
        answer=answer,
        seconds=taken,
        steps=len(result.steps),
        tokens=result.usage.output_tokens,
        transcript=() if solved else [(one.role, one.text) for one in result.messages if one.role != 'system'],
    )


async def run_tests(sandbox: Sandbox, task: Task) -> str:
    """Run the tests of a task on what is defined in the sandbox. Returns the error; empty if all pass."""
    cell = await sandbox.run('\n'.join(task.tests))
    return '' if cell.error is None else f'tests: {cell.error}'
