"""pass@k: how likely it is that one of k samples of a task is right."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from habilis.core.errors import AgentError
from habilis.rollouts.contract import RolloutGroup

_RESAMPLES = 1000


@dataclass(frozen=True, kw_only=True)
class PassRate:
    """pass@k over all tasks, with an interval of 95 %."""

    k: int
    rate: float
    low: float
    high: float
    tasks: int

    def __str__(self) -> str:
        return f'pass@{self.k} {self.rate:.1%} [{self.low:.1%}, {self.high:.1%}], {self.tasks} tasks'


def pass_rate(groups: Sequence[RolloutGroup], k: int = 1, *, solved: float = 1.0) -> PassRate:
    """The mean over tasks of the chance that one of k samples has a reward of `solved` or more.

    The interval is by bootstrap: tasks are drawn anew, and the samples of each. Raises `AgentError` if a group has
    fewer than k rollouts.
    """
    if not groups or not 1 <= k <= min(len(group.rollouts) for group in groups):
        msg = f'k={k!r}: give 1 or more, and not more than each task has samples'
        raise AgentError(msg)
    counts = [(len(group.rollouts), sum(one.reward >= solved for one in group.rollouts)) for group in groups]
    draw = random.Random(0)  # the same groups have the same interval
    means = sorted(_mean([_redrawn(draw, draw.choice(counts)) for _ in counts], k) for _ in range(_RESAMPLES))
    low, high = means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]
    return PassRate(k=k, rate=_mean(counts, k), low=low, high=high, tasks=len(counts))


def _redrawn(draw: random.Random, counted: tuple[int, int]) -> tuple[int, int]:
    total, right = counted
    return total, sum(draw.random() < right / total for _ in range(total))


def _mean(counts: Sequence[tuple[int, int]], k: int) -> float:
    """The unbiased estimate for each task, of samples that were drawn without regard to their order; and its mean."""
    rates = [1 - math.comb(total - right, k) / math.comb(total, k) for total, right in counts]
    return sum(rates) / len(rates)
