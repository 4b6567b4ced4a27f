"""`CodeEnvironment`: the agent's loop for those who bring their own: `reset`, then `step` with each reply."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace

from habilis.agent import Agent
from habilis.agent.context.prompt import as_sent
from habilis.agent.contract import Result
from habilis.agent.run_spec import run_spec
from habilis.core.closing import Closing
from habilis.core.errors import AgentError
from habilis.flows.tasks import cancel_tasks
from habilis.models.contract import NO_OPTIONS, Delta, Function, Message, Options, Reply, Usage
from habilis.models.wrapper import WrapperModel
from habilis.rollouts.contract import Reward, RolloutTask, Sample
from habilis.rollouts.preparation import Preparation
from habilis.rollouts.rewards import exact_reward, reward_of


@dataclass(frozen=True, kw_only=True)
class EnvironmentState:
    """What the loop wants a reply to; or how the episode has ended."""

    messages: tuple[Message, ...] = ()
    """The whole conversation, as a model would be sent it."""

    functions: tuple[Function, ...] = ()
    reward: float = 0.0
    """0 until the episode is done."""

    is_done: bool = False
    result: Result[object] | None = None


class CodeEnvironment(Closing):
    """Episodes of one task. Prompts, parsing, tools, limits and observations are those of the agent."""

    def __init__(self, agent: Agent, task: RolloutTask, *, reward: Reward = exact_reward) -> None:
        self._caller = _Caller(agent.model)
        self._agent = agent.with_model(self._caller)
        self._preparation = Preparation(self._agent, task)
        self._reward = reward
        self._is_prepared = False
        self._episode: asyncio.Task[tuple[Result[object], float]] | None = None

    async def reset(self) -> EnvironmentState:
        """Start an episode, from a copy of the prepared sandbox. One that is not done is dropped."""
        await self._drop()
        if not self._is_prepared:
            await self._preparation.__aenter__()
            self._is_prepared = True
        self._episode = asyncio.create_task(self._run())
        return await self._next()

    async def step(self, reply: str | Reply) -> EnvironmentState:
        """Give the next reply. Raises `AgentError` if no episode is under way."""
        if self._episode is None or self._episode.done():
            msg = 'the episode is done: start another one with reset()'
            raise AgentError(msg)
        self._caller.replies.put_nowait(Reply(text=reply) if isinstance(reply, str) else reply)
        return await self._next()

    async def close(self) -> None:
        """End the episode and close the sandbox."""
        await self._drop()
        if self._is_prepared:
            self._is_prepared = False
            await self._preparation.__aexit__(None, None, None)
        await self._agent.close()

    async def _drop(self) -> None:
        if self._episode is not None:
            await cancel_tasks([self._episode])
            self._episode = None
        self._caller.clear()

    async def _run(self) -> tuple[Result[object], float]:
        task = self._preparation.task
        async with self._preparation.copy() as sandbox:
            spec = run_spec(task.task, {'variables': dict(task.variables) or None})
            result = await self._agent.run_spec(self._preparation.with_sandbox(spec, sandbox))
            sample = Sample(task=task, result=result, sandbox=sandbox, prepared=self._preparation.sandbox)
            return result, await reward_of(self._reward, sample)

    async def _next(self) -> EnvironmentState:
        """Wait until the loop asks for a reply, or has ended."""
        assert self._episode is not None
        asked = asyncio.create_task(self._caller.requests.get())
        try:
            await asyncio.wait([asked, self._episode], return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
        finally:
            await cancel_tasks([asked])
        result, reward = self._episode.result()
        return EnvironmentState(messages=result.messages, reward=reward, is_done=True, result=result)


class _Caller(WrapperModel):
    """A model whose replies come from the caller of the environment."""

    requests: asyncio.Queue[EnvironmentState]
    replies: asyncio.Queue[Reply]

    def clear(self) -> None:
        """Forget an episode."""
        self.requests, self.replies = asyncio.Queue(), asyncio.Queue()

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """See `Model`."""
        sent = tuple(as_sent(message) for message in messages)
        self.requests.put_nowait(EnvironmentState(messages=sent, functions=options.functions))
        reply = await self.replies.get()
        return reply if reply.usage != Usage() else replace(reply, usage=Usage(requests=1))

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """See `Model`."""
        reply = await self.request(messages, options)
        yield Delta(text=reply.text)
        yield reply

    async def close(self) -> None:
        """Does nothing: the model of the agent is not asked."""
