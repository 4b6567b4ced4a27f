"""`Preparation`: the sandbox of a task, made once, of which each sample gets a copy."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self

from habilis.agent import Agent
from habilis.agent.run_spec import RunSpec
from habilis.core.errors import AgentError
from habilis.rollouts.contract import RolloutTask
from habilis.sandbox import Sandbox


class Preparation:
    """A sandbox in which the code of a task that prepares it has run. Use it with `async with`."""

    def __init__(self, agent: Agent, task: RolloutTask) -> None:
        self.task = task
        self._agent = agent
        self._sandbox: Sandbox | None = None

    async def __aenter__(self) -> Self:
        self._sandbox = sandbox = await self._agent.open_sandbox()
        try:
            cell = await sandbox.run(self.task.prepare) if self.task.prepare else None
            if cell is not None and cell.error is not None:
                msg = f'the code that prepares the sandbox of {self.task.task!r} failed: {cell.error}'
                raise AgentError(msg)
        except BaseException:
            await sandbox.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.sandbox.close()

    @property
    def sandbox(self) -> Sandbox:
        """The prepared sandbox itself."""
        assert self._sandbox is not None, 'it is not entered'
        return self._sandbox

    @asynccontextmanager
    async def copy(self) -> AsyncGenerator[Sandbox]:
        """A copy for one sample, closed at the end of the block."""
        sandbox = await self.sandbox.fork()
        try:
            yield sandbox
        finally:
            await sandbox.close()

    @staticmethod
    def with_sandbox(spec: RunSpec, sandbox: Sandbox) -> RunSpec:
        """A run that works in this sandbox."""
        return replace(spec, own_sandbox=sandbox)
