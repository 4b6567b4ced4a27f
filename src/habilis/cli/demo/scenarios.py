"""Run one demo and check its result."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from habilis.agent.agent import Agent
from habilis.agent.contract import Result, RunLimits
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.team import plan_and_implement
from habilis.cli.demo.tasks import MAKER, NOTE, NOTE_TEXT, PRIMES, PRIMES_BELOW_30, READER, Demo
from habilis.core.errors import WorkspaceError
from habilis.core.settings import Settings
from habilis.models.contract import Model, Usage
from habilis.sandbox import Sandbox

LIMITS = RunLimits(steps=8)
"""A demo that needs more steps is stuck."""


@dataclass(frozen=True, kw_only=True)
class DemoModels:
    """Models, settings and hooks of a demo."""

    model: Model
    planner: Model
    """Planner of the third demo; may be the same model."""

    settings: Settings
    hooks: Sequence[Hook] = ()

    @property
    def options(self) -> dict[str, Any]:
        """Options of every agent of a demo."""
        return {'limits': LIMITS, 'hooks': self.hooks, 'settings': self.settings}


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """Result of one demo."""

    output: object
    problem: str | None
    """What is wrong with the result; None if it is correct."""

    steps: int
    seconds: float
    usage: Usage


async def run_demo(demo: Demo, models: DemoModels) -> DemoResult:
    """Run one demo."""
    return await (_one_sandbox, _two_sandboxes, _two_models)[demo.number - 1](demo, models)


async def _one_sandbox(demo: Demo, models: DemoModels) -> DemoResult:
    async with Agent[int](models.model, output_type=int, **models.options) as agent:
        result = await agent.run(demo.task)
    return _check(demo, result)


async def _two_sandboxes(demo: Demo, models: DemoModels) -> DemoResult:
    async with (
        await Sandbox.create(models.settings.sandbox, workspace=True) as maker,
        await Sandbox.create(models.settings.sandbox, workspace=True) as reader,
        Agent[str](models.model, output_type=str, sandbox={MAKER: maker, READER: reader}, **models.options) as agent,
    ):
        result = await agent.run(demo.task)
        used = {call.tool for step in result.steps for call in step.calls if call.ok}
        copy = await _read_file(reader, NOTE)
    if copy is None or copy.strip() != NOTE_TEXT:
        return _check(demo, result, f'the file {NOTE} is not in the second sandbox')
    return _check(demo, result, None if 'run_in' in used else 'the file was not read in the second sandbox')


async def _two_models(demo: Demo, models: DemoModels) -> DemoResult:
    async with (
        await Sandbox.create(models.settings.sandbox, workspace=True) as shared,
        Agent(models.planner, name='planner', python=False, **models.options) as planner,
        Agent[int](models.model, output_type=int, name='implementer', sandbox=shared, **models.options) as implementer,
    ):
        team = await plan_and_implement(planner, implementer, demo.task)
        written = await _read_file(shared, PRIMES)
    problem = None
    if (written or '').split() != [str(prime) for prime in PRIMES_BELOW_30]:
        problem = f'the file {PRIMES} does not hold the primes below 30'
    if team.implemented is None:
        return _check(demo, team.planned, 'there is no plan')
    return _check(demo, team.implemented, problem, before=team.planned)


def _check(
    demo: Demo, result: Result[object], problem: str | None = None, *, before: Result[object] | None = None
) -> DemoResult:
    output: object = result.output.strip() if isinstance(result.output, str) else result.output
    if result.ended != 'answer':
        problem = f'no answer ({result.ended})'
    elif output != demo.expected:
        problem = f'expected {demo.expected!r}'
    return DemoResult(
        output=output,
        problem=problem,
        steps=len(result.steps) + (len(before.steps) if before else 0),
        seconds=result.seconds + (before.seconds if before else 0.0),
        usage=result.usage + (before.usage if before else Usage()),
    )


async def _read_file(sandbox: Sandbox, path: str) -> str | None:
    try:
        return (await sandbox.download(path)).decode(errors='replace')
    except WorkspaceError:
        return None
