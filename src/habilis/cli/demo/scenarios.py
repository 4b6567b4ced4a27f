"""The three demos, each played for real and judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from habilis.agent.agent import Agent
from habilis.agent.contract import Result, RunLimits
from habilis.agent.options import AgentOptions
from habilis.agent.team import plan_and_implement
from habilis.agent.watch import Hook
from habilis.cli.demo.tasks import MAKER, NOTE, NOTE_TEXT, PRIMES, PRIMES_BELOW_30, READER, Demo
from habilis.core.errors import WorkspaceError
from habilis.core.settings import Settings
from habilis.models.contract import Model, Usage
from habilis.sandbox import Sandbox

LIMITS = RunLimits(steps=8)
"""A demo that has not ended after so many steps never will."""


@dataclass(frozen=True, kw_only=True)
class Cast:
    """Who plays."""

    model: Model
    planner: Model
    """The second model of the third demo; may be the same."""

    settings: Settings
    hooks: Sequence[Hook] = ()

    def options(self, **more: Unpack[AgentOptions]) -> AgentOptions:
        """For an agent; `more` wins."""
        options = AgentOptions(limits=LIMITS, hooks=self.hooks, settings=self.settings)
        options.update(more)
        return options


@dataclass(frozen=True, kw_only=True)
class Played:
    """How a demo went."""

    output: object
    wrong: str | None
    """What is wrong with it; None if it is right."""

    steps: int
    seconds: float
    usage: Usage


async def play(demo: Demo, cast: Cast) -> Played:
    """One demo."""
    return await (_one_and_one, _two_sandboxes, _two_models)[demo.number - 1](demo, cast)


async def _one_and_one(demo: Demo, cast: Cast) -> Played:
    async with Agent[int](cast.model, output_type=int, **cast.options()) as agent:
        result = await agent.run(demo.task)
    return _judged(demo, result)


async def _two_sandboxes(demo: Demo, cast: Cast) -> Played:
    async with (
        await Sandbox.create(cast.settings.sandbox, workspace=True) as maker,
        await Sandbox.create(cast.settings.sandbox, workspace=True) as reader,
        Agent[str](cast.model, output_type=str, **cast.options(sandbox={MAKER: maker, READER: reader})) as agent,
    ):
        result = await agent.run(demo.task)
        used = {call.name for step in result.steps for call in step.calls if call.ok}
        copied = await _file(reader, NOTE)
    if copied is None or copied.strip() != NOTE_TEXT:
        return _judged(demo, result, f'the file {NOTE} is not in the second sandbox')
    return _judged(demo, result, None if 'run_in' in used else 'the file was not read in the second sandbox')


async def _two_models(demo: Demo, cast: Cast) -> Played:
    async with (
        await Sandbox.create(cast.settings.sandbox, workspace=True) as shared,
        Agent[Any](cast.planner, **cast.options(name='planner', python=False)) as planner,
        Agent[int](cast.model, output_type=int, **cast.options(name='implementer', sandbox=shared)) as implementer,
    ):
        team = await plan_and_implement(planner, implementer, demo.task)
        written = await _file(shared, PRIMES)
    wrong = None
    if (written or '').split() != [str(prime) for prime in PRIMES_BELOW_30]:
        wrong = f'the file {PRIMES} does not hold the primes below 30'
    if team.implemented is None:
        return _judged(demo, team.planned, 'there is no plan')
    return _judged(demo, team.implemented, wrong, before=team.planned)


def _judged(
    demo: Demo, result: Result[Any], wrong: str | None = None, *, before: Result[object] | None = None
) -> Played:
    output: object = result.output.strip() if isinstance(result.output, str) else result.output
    if result.ended != 'answer':
        wrong = f'no answer ({result.ended})'
    elif output != demo.expected:
        wrong = f'the answer should be {demo.expected!r}'
    return Played(
        output=output,
        wrong=wrong,
        steps=len(result.steps) + (len(before.steps) if before else 0),
        seconds=result.seconds + (before.seconds if before else 0.0),
        usage=result.usage + (before.usage if before else Usage()),
    )


async def _file(sandbox: Sandbox, path: str) -> str | None:
    try:
        return (await sandbox.download(path)).decode(errors='replace')
    except WorkspaceError:
        return None
