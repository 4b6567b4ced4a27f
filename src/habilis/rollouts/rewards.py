"""Rewards: by comparison with the expected answer, or by code that is run in a sandbox."""

import inspect
from dataclasses import dataclass

from habilis.core.codec import NotPlain, pack
from habilis.rollouts.contract import Reward, Sample


def exact_reward(sample: Sample) -> float:
    """1 if the answer is the expected one and of the same type, else 0."""
    result, expected = sample.result, sample.task.expected
    is_right = result.ended == 'answer' and type(result.output) is type(expected) and result.output == expected
    return float(is_right)


@dataclass(frozen=True)
class CodeReward:
    """The value of the last line of some code. It finds the answer as `answer`, and what was expected as `expected`.

    It runs in a copy of the sandbox that was prepared for the task, where no code of the model has run; with
    `inside=True` in that of the run, whose variables it sees. Then code of the model can have changed what it calls.
    Without an answer, or if the code fails, the reward is 0.
    """

    code: str
    inside: bool = False

    async def __call__(self, sample: Sample) -> float:
        """The reward of a sample."""
        if sample.result.ended != 'answer':
            return 0.0
        try:
            variables = {'answer': sample.result.output, 'expected': sample.task.expected}
            pack(variables)
        except NotPlain:  # an object of the host, such as a dataclass
            return 0.0
        sandbox = await (sample.sandbox if self.inside else sample.prepared).fork()
        try:
            await sandbox.set_variables(variables)
            cell = await sandbox.run(self.code)
        finally:
            await sandbox.close()
        value = cell.value
        return float(value) if cell.error is None and isinstance(value, (bool, int, float)) else 0.0


async def reward_of(reward: Reward, sample: Sample) -> float:
    """The reward of a sample, by any kind of function."""
    value = reward(sample)
    return float(await value if inspect.isawaitable(value) else value)
