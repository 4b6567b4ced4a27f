"""Solves a task again as a run nested in the first one, for `agreement.py` to compare."""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from habilis.agent.contract import Result
from habilis.agent.durable.recorder import Recorder
from habilis.agent.durable.records import Inputs
from habilis.agent.loop.agreement import TEMPERATURE, Comparison, Solution, StartState
from habilis.agent.loop.recalled_calls import CallResults, RecalledCalls
from habilis.agent.loop.sandboxes import Sandboxes
from habilis.agent.loop.started_run import RunInputs, StartedRun
from habilis.agent.options import AgentSetup
from habilis.models.contract import Model
from habilis.models.usage import Ledger

StartRun = Callable[[AgentSetup, RunInputs], Awaitable[StartedRun]]


async def save_start(setup: AgentSetup, inputs: RunInputs, sandboxes: Sandboxes | None) -> StartState:
    """The state that every solution starts from."""
    backend = setup.sandbox if isinstance(setup.sandbox, str) else None
    is_resumed = inputs.recorder is not None and inputs.recorder.resumes
    settings = setup.sandbox_settings if sandboxes is None else sandboxes.settings
    return await StartState.save(sandboxes, backend, settings, is_resumed=is_resumed)


def compare_with(
    start_run: StartRun, setup: AgentSetup, inputs: RunInputs, results: CallResults, start: StartState
) -> Comparison:
    """A comparison with further solutions, as the setup wants them."""
    solve = functools.partial(_solve_again, start_run, setup, inputs, results, start)
    load_larger = inputs.load_larger

    async def escalate() -> Solution:
        assert load_larger is not None
        return await solve('escalated', model=await asyncio.to_thread(load_larger), temperature=None)

    return Comparison(
        setup.agree,
        lambda number: solve(f'solution-{number}'),
        ask=setup.on_disagreement == 'ask',
        escalate=escalate if load_larger is not None else None,
        larger=str(setup.escalate if isinstance(setup.escalate, str) else getattr(setup.escalate, 'name', '')),
    )


async def _solve_again(
    start_run: StartRun,
    setup: AgentSetup,
    inputs: RunInputs,
    results: CallResults,
    start: StartState,
    name: str,
    *,
    model: Model | None = None,
    temperature: float | None = TEMPERATURE,
) -> Solution:
    """Solve the task from the same start, as a run nested in the first one."""
    if start.problem:
        return Solution(problem=start.problem)
    recorder = None
    if inputs.recorder is not None:
        recorder = Recorder(inputs.recorder.scope.below(name), top=False, task=inputs.spec.task)
    calls = RecalledCalls(results, recorder)
    again = replace(
        inputs,
        spec=replace(inputs.spec, run_id=f'{inputs.spec.run_id}/{name}', hooks=()),
        model=model or inputs.model,
        ledger=Ledger(name),
        sandboxes=None,
        recorder=recorder,
        calls=calls,
        temperature=temperature,
        load_larger=None,
    )
    async with contextlib.AsyncExitStack() as stack:
        if (sandbox := await start.open(name)) is not None:
            await stack.enter_async_context(sandbox)
        own = replace(setup, name=name, agree=1, summary=None, sandbox=setup.sandbox if sandbox is None else sandbox)
        started = await start_run(own, again)
        try:
            return await _finish(started, calls, recorder, inputs)
        finally:
            await started.close()


async def _finish(started: StartedRun, calls: RecalledCalls, recorder: Recorder | None, inputs: RunInputs) -> Solution:
    if recorder is not None:
        opened = Inputs(task=inputs.spec.task, model=inputs.model.name, variables=inputs.spec.variables)
        await recorder.open(opened, started.prompt)
    result: Result[object] | None = None
    artifacts: Mapping[str, str] = inputs.spec.artifacts
    while result is None and not calls.stopped:
        result = await started.run.step(artifacts=artifacts)
        artifacts = {}
    if calls.stopped or result is None:
        return Solution(problem=calls.stopped)
    if result.ended != 'answer':
        return Solution(problem=f'another solution ended with {result.ended}')
    return Solution(output=result.output)
