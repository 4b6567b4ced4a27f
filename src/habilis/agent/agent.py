"""`Agent`: give it a task, it writes Python until the task is done."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, Self, Unpack, cast

from typing_extensions import TypeVar

from habilis.agent.contract import Result, RunLimits
from habilis.agent.options import AgentOptions, make_setup
from habilis.agent.run import Run
from habilis.agent.start import Starting, start_run
from habilis.agent.watch import Hook
from habilis.core.errors import AgentError
from habilis.core.events import Event
from habilis.models.config import ModelConfig
from habilis.models.contract import Message, Model
from habilis.models.load import load_model
from habilis.models.usage import Ledger
from habilis.sandbox.sync import wait_for

T = TypeVar('T', default=Any)


class Agent(Generic[T]):
    """A model, its tools and its sandbox. One agent may do many runs, also at the same time."""

    def __init__(
        self,
        model: str | ModelConfig | Model | None = None,
        *,
        output_type: type[T] | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        """Nothing is started or downloaded yet.

        Args:
            model: `provider:model`, an alias, or a `Model`; None: what is configured, or else what is found.
            output_type: what an answer must be: `int`, `list[str]`, a dataclass, a pydantic model.
            tools: functions the code may call, and toolsets.
            sandbox: a backend by name (a new sandbox for each run), a `Sandbox`, or several by name.
            workspace: host folder for files, at `/workspace` inside; True for a temporary one.
            sandbox_settings: more settings of `Sandbox.create`.
            instructions: more for the system prompt.
            limits: bounds of a run.
            observations: how much of its output the model is shown.
            summary: `off`, `default`, or the prompt of a last call that sums up the run.
            python: False to let the model only call functions.
            hooks: called with every event; see `habilis.agent.hooks`.
            gates: see each tool call first; may deny or change it, or ask.
            approve: asks a person about tool calls that need it.
            name: of the agent, in events and usage.
            settings: instead of those of the environment and `habilis.toml`.
        """
        self._which = model
        self._output_type = output_type
        self._setup = make_setup(options)
        self._model: Model | None = model if isinstance(model, Model) else None
        self._open: dict[str, Starting] = {}
        self._closed = False
        self.ledger = Ledger()
        """What all runs of this agent have used."""

    @property
    def name(self) -> str:
        """Of the agent, in events and usage."""
        return self._setup.name

    @property
    def model(self) -> Model:
        """The model that is asked. It is looked for when it is first needed."""
        if self._model is None:
            self._model = load_model(self._which, settings=self._setup.settings)
        return self._model

    # Runs -------------------------------------------------------------------------------------------------------------

    async def run(
        self,
        task: str,
        *,
        variables: Mapping[str, object] | None = None,
        artifacts: Mapping[str, str] | None = None,
        history: Sequence[Message] = (),
        limits: RunLimits | None = None,
        max_steps: int | None = None,
        hooks: Sequence[Hook] = (),
    ) -> Result[T]:
        """Do a task, to its end or to a limit.

        Args:
            task: what to do, in words.
            variables: plain data the code finds under these names; `Result.variables` has them as it left them.
            artifacts: named documents for the first step.
            history: messages of an earlier run to go on from.
            limits: instead of the agent's.
            max_steps: the same for steps alone.
            hooks: for this run, after the agent's.
        """
        run = await self.start(
            task, variables=variables, history=history, limits=limits, max_steps=max_steps, hooks=hooks
        )
        return await self._finish(run, artifacts or {})

    def run_sync(self, task: str, **options: Any) -> Result[T]:
        """`run` without `await`; works inside a running event loop too (Jupyter)."""
        return wait_for(self.run(task, **options))

    async def stream(self, task: str, **options: Any) -> AsyncGenerator[Event, None]:
        """Do a task and give its events as they happen; the last is `run_finished`, with the `Result` as data."""
        queue: asyncio.Queue[Event] = asyncio.Queue()
        hooks = (*options.pop('hooks', ()), queue.put_nowait)
        work = asyncio.ensure_future(self.run(task, hooks=hooks, **options))
        try:
            while not (work.done() and queue.empty()):
                getting = asyncio.ensure_future(queue.get())
                await asyncio.wait((getting, work), return_when=asyncio.FIRST_COMPLETED)
                if getting.done():
                    yield getting.result()
                else:
                    getting.cancel()
            await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def start(
        self,
        task: str,
        *,
        variables: Mapping[str, object] | None = None,
        history: Sequence[Message] = (),
        limits: RunLimits | None = None,
        max_steps: int | None = None,
        hooks: Sequence[Hook] = (),
    ) -> Run:
        """A run to be done step by step: `await run.step()` until it gives a result. Close the agent at the end."""
        if self._closed:
            msg = 'this agent is closed'
            raise AgentError(msg)
        if not task.strip():
            msg = 'the task is empty: say what to do'
            raise AgentError(msg)
        if self._model is None:
            self._model = await asyncio.to_thread(load_model, self._which, settings=self._setup.settings)
        started = await start_run(
            self._setup,
            model=self._model,
            output_type=self._output_type,
            run_id=new_run_id(),
            task=task,
            variables=variables or {},
            history=history,
            limits=_limits(limits or self._setup.limits, max_steps),
            hooks=(*self._setup.hooks, *hooks),
            ledger=self.ledger.child(self._setup.name),
        )
        self._open[started.run.id] = started
        return started.run

    async def resume(
        self,
        run_id: str,
        answer: str | None = None,
        *,
        limits: RunLimits | None = None,
        max_steps: int | None = None,
    ) -> Result[T]:
        """Go on with a run that stopped at a limit, an error, or with a question.

        Args:
            run_id: of `Result.run_id`.
            answer: to its question, or something more to tell it.
            limits: for what is to come; without them it gets as much again as it had.
            max_steps: the same for steps alone.
        """
        if run_id not in self._open:
            msg = f'this agent has no unfinished run {run_id!r}'
            raise AgentError(msg)
        started = self._open[run_id]
        if started.run.result is not None and started.run.result.ended == 'question' and answer is None:
            msg = 'the run ended with a question: pass the answer'
            raise AgentError(msg)
        started.run.go_on(_limits(limits or self._setup.limits, max_steps))
        if answer is not None:
            started.run.tell(answer)
        return await self._finish(started.run, {})

    async def _finish(self, run: Run, artifacts: Mapping[str, str]) -> Result[T]:
        result: Result[object] | None = None
        try:
            while result is None:
                result = await run.step(artifacts=artifacts)
                artifacts = {}
        except asyncio.CancelledError:
            await self._leave(run.id)
            raise
        if result.ended == 'answer':
            await self._leave(run.id)
        return cast('Result[T]', result)

    async def _leave(self, run_id: str) -> None:
        started = self._open.pop(run_id, None)
        if started is not None:
            await started.close()

    # The end ----------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the sandboxes of unfinished runs, and the model if the agent has made it."""
        self._closed = True
        for run_id in list(self._open):
            await self._leave(run_id)
        if self._model is not None and self._model is not self._which:
            await self._model.close()

    def close_sync(self) -> None:
        """`close` without `await`."""
        wait_for(self.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_sync()


def new_run_id() -> str:
    """Short enough to type, long enough to be the only one."""
    return f'run-{secrets.token_hex(6)}'


def _limits(limits: RunLimits, max_steps: int | None) -> RunLimits:
    return limits if max_steps is None else replace(limits, steps=max_steps)
