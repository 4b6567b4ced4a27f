"""The contract of rollouts: tasks, samples and their rewards. Read this first.

A *rollout* is one run of an agent on a task, with a reward. A *group* has several rollouts of the same task, which
start from copies of the same sandbox and differ only by their seeds. What a trainer reads is what the model was sent.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from habilis.agent.contract import Result, Step
from habilis.models.contract import Function, Message, Reply, Usage

if TYPE_CHECKING:
    from habilis.sandbox import Sandbox


@dataclass(frozen=True, kw_only=True)
class RolloutTask:
    """A task to sample."""

    task: str
    expected: object = None
    """The right answer, for the reward. Neither the model nor its code sees it."""

    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    """Plain data that the code finds under these names."""

    prepare: str = ''
    """Code that is run once, in the sandbox of which each sample gets a copy."""

    id: str = ''


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A run that has ended, to be rewarded."""

    task: RolloutTask
    result: Result[object]
    sandbox: 'Sandbox'
    """The sandbox of the run, as its code left it."""

    prepared: 'Sandbox'
    """The sandbox it is a copy of, which no code of the model has seen. Fork it to run anything in it."""


Reward = Callable[[Sample], float | Awaitable[float]]
StepReward = Callable[[RolloutTask, Step], float]


@dataclass(frozen=True, kw_only=True)
class RolloutRecord:
    """A rollout without its task, which the dataset has, and without the functions of the model."""

    number: int
    """The place of the task in the dataset, from 1."""

    sample: int
    """The place of the rollout in its group, from 1."""

    seed: int
    """What the model was given as `seed`; with it `Rollouts.replay` plays the rollout again."""

    run_id: str
    output: object
    ended: str
    reward: float
    step_rewards: tuple[float, ...] = ()
    prompt: tuple[Message, ...] = ()
    """The messages before the first reply, as they were sent."""

    completion: tuple[Message, ...] = ()
    """The replies, and what the agent sent in between."""

    replies: tuple[Reply, ...] = ()
    """The replies again, with their usage and, where the model gives them, their tokens."""

    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True)
class Rollout(RolloutRecord):
    """One run of the agent on a task, with its reward."""

    task: RolloutTask
    functions: tuple[Function, ...] = ()
    """The functions that the model was offered."""


@dataclass(frozen=True, kw_only=True)
class RolloutGroup:
    """The rollouts of one task."""

    task: RolloutTask
    number: int
    rollouts: tuple[Rollout, ...]

    @property
    def distinct(self) -> tuple[Rollout, ...]:
        """Those whose replies differ; of equal ones only the first."""
        found = {tuple((reply.text, reply.calls) for reply in one.replies): one for one in reversed(self.rollouts)}
        return tuple(sorted(found.values(), key=lambda one: one.sample))
