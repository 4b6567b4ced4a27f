"""`Rollouts`: sample an agent on many tasks, several times each."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from itertools import islice

from habilis.agent import Agent
from habilis.agent.context.prompt import as_sent
from habilis.agent.run_spec import run_spec
from habilis.core.closing import Closing
from habilis.core.errors import AgentError
from habilis.flows.tasks import cancel_tasks
from habilis.journal.copies import new_run_id
from habilis.journal.values import fingerprint
from habilis.rollouts.contract import Reward, Rollout, RolloutGroup, RolloutTask, Sample, StepReward
from habilis.rollouts.finished import FinishedRollouts
from habilis.rollouts.preparation import Preparation
from habilis.rollouts.rewards import exact_reward, reward_of
from habilis.rollouts.seeded_model import EXCHANGE, Exchange, SeededModel

META_KEY = 'rollout'
"""Key of the seed in the metadata of a run."""


class Rollouts(Closing):
    """Groups of samples: `async for group in Rollouts(agent, tasks, samples=8)`; and `replay` for one of them."""

    def __init__(
        self,
        agent: Agent,
        dataset: Iterable[RolloutTask],
        *,
        samples: int = 8,
        reward: Reward = exact_reward,
        step_reward: StepReward | None = None,
        seed: int = 0,
        name: str = '',
        logprobs: bool = False,
        concurrency: int = 16,
    ) -> None:
        """Nothing is started yet.

        Args:
            agent: the agent to sample, with a temperature above zero.
            dataset: the tasks; read as they are needed.
            samples: rollouts of each task.
            reward: the reward of a rollout, from its result and its sandbox.
            step_reward: the reward of each step, if steps have their own.
            seed: the seed of all seeds.
            name: the name of the set. A set of the same name, tasks and seed in the journal of the agent goes on where
                it was: what is finished is read, and not sampled again.
            logprobs: ask the model for the tokens of its replies and their probabilities.
            concurrency: maximum number of runs at a time.
        """
        if samples < 1 or concurrency < 1:
            msg = f'samples={samples!r}, concurrency={concurrency!r}: give 1 or more'
            raise AgentError(msg)
        self._agent = agent.with_model(SeededModel(agent.model))
        self._finished = FinishedRollouts(agent.journal, name=name, model=agent.model.name)
        self._dataset = dataset
        self._samples = samples
        self._reward = reward
        self._step_reward = step_reward
        self._seed = seed
        self._logprobs = logprobs
        self._window = max(1, concurrency // samples)
        self._room = asyncio.Semaphore(concurrency)

    async def __aiter__(self) -> AsyncGenerator[RolloutGroup, None]:
        """The groups, in the order of the dataset."""
        source = iter(enumerate(self._dataset, 1))
        pending: list[asyncio.Task[RolloutGroup]] = []
        try:
            while True:
                for number, task in islice(source, self._window + 1 - len(pending)):
                    pending.append(asyncio.create_task(self._group(number, task)))
                if not pending:
                    return
                group = await pending[0]
                pending.pop(0)
                yield group
        finally:
            await cancel_tasks(pending)

    async def close(self) -> None:
        """Close the runs that are open. The agent that was given stays open."""
        await self._agent.close()
        await self._finished.close()

    async def replay(self, rollout: Rollout) -> Rollout:
        """Play a rollout again: the same task, from the same start, with the same seed."""
        async with Preparation(self._agent, rollout.task) as prepared:
            return await self._rollout(prepared, rollout.number, rollout.sample, rollout.seed, new_run_id())

    async def _group(self, number: int, task: RolloutTask) -> RolloutGroup:
        seeds = {sample: self._seed_of(number, sample) for sample in range(1, self._samples + 1)}
        runs = {sample: self._finished.run_of(task, number, sample, seed) for sample, seed in seeds.items()}
        found = {sample: await self._finished.find(run, task) for sample, run in runs.items()}
        if not all(found.values()):
            async with Preparation(self._agent, task) as prepared:
                new = {
                    sample: asyncio.create_task(self._rollout(prepared, number, sample, seeds[sample], runs[sample]))
                    for sample, known in found.items()
                    if known is None
                }
                try:
                    found |= dict(zip(new, await asyncio.gather(*new.values()), strict=True))
                finally:
                    await cancel_tasks(list(new.values()))
        return RolloutGroup(task=task, number=number, rollouts=tuple(one for one in found.values() if one is not None))

    def _seed_of(self, number: int, sample: int) -> int:
        return int(fingerprint(self._seed, number, sample)[:7], 16)  # positive, and of 32 bits

    async def _rollout(self, prepared: Preparation, number: int, sample: int, seed: int, run_id: str) -> Rollout:
        task = prepared.task
        async with self._room, prepared.copy() as sandbox:
            exchange = Exchange(seed=seed, logprobs=self._logprobs)
            EXCHANGE.set(exchange)
            meta = {META_KEY: {'seed': seed, 'number': number, 'sample': sample}}
            spec = run_spec(task.task, {'variables': dict(task.variables) or None, 'run_id': run_id, 'meta': meta})
            result = await self._agent.run_spec(prepared.with_sandbox(spec, sandbox))
            sampled = Sample(task=task, result=result, sandbox=sandbox, prepared=prepared.sandbox)
            reward = await reward_of(self._reward, sampled)
        sent = [as_sent(message) for message in exchange.messages]
        last = [exchange.replies[-1].message] if exchange.replies else []
        step_reward = self._step_reward
        rollout = Rollout(
            task=task,
            number=number,
            sample=sample,
            seed=seed,
            run_id=run_id,
            output=result.output,
            ended=result.ended,
            reward=reward,
            step_rewards=() if step_reward is None else tuple(step_reward(task, step) for step in result.steps),
            prompt=tuple(sent[: exchange.prompt]),
            completion=(*sent[exchange.prompt :], *last),
            functions=exchange.functions,
            replies=tuple(exchange.replies),
            usage=result.usage,
        )
        await self._finished.keep(rollout)
        return rollout
