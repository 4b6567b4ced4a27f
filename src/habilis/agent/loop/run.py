"""One run: asks the model and does what it says, step by step, until there is a result."""

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Self

from habilis.agent.context.truncation import Bounds
from habilis.agent.contract import Ended, Result, RunLimits, Step
from habilis.agent.events import RunFailed, StepFinished, StepStarted
from habilis.agent.loop.components import Components, calling_run, parent_ledgers
from habilis.agent.loop.finish import end_run, timed_out_step
from habilis.agent.loop.turns import MAX_REPAIRS, Turns
from habilis.agent.loop.variables import check_variables
from habilis.agent.options import AnyTool, check_types
from habilis.core.errors import AgentError, RunStopped
from habilis.journal import Paused
from habilis.models.contract import Message
from habilis.tools.permits import Permit

STOPPED = 'the run was stopped'


class Run:
    """A run under way. Call `step` until it returns a result; `steps` are those done so far."""

    def __init__(self, components: Components) -> None:
        self.id = components.spec.run_id
        self.steps: list[Step] = []
        self.result: Result[object] | None = None
        self.toolbox = components.toolbox
        self.is_busy = False
        self.is_interrupted = False
        """Whether its last step stopped in the middle; what was done of it is in the record."""

        self.on_close: Callable[[], Awaitable[None]] | None = None
        """Set by the agent, which knows what to free."""

        self._is_stopped = False
        self._task: asyncio.Task[object] | None = None
        """The task of the step under way."""

        self._components = components
        self._turns = Turns(components)

    def __repr__(self) -> str:
        ended = '' if self.result is None else f', ended={self.result.ended!r}'
        return f'Run({self.id!r}, steps={len(self.steps)}{ended})'

    @property
    def is_recorded(self) -> bool:
        """Whether it can be resumed from a journal."""
        return self._components.recorder is not None

    async def step(
        self, *, can_stop: bool = True, artifacts: Mapping[str, str] | None = None, tools: Sequence[AnyTool] = ()
    ) -> Result[object] | None:
        """Ask the model once and do what it says. Returns the result if that ended the run, else None.

        Args:
            can_stop: whether `final_answer` can be called in this step, and a reply without code is an answer.
            artifacts: documents for this step: shown to the model by name, and in code in the dict `artifacts`.
            tools: more tools for this step, beside those of the agent.
        """
        check_types('a step', {'artifacts': artifacts})
        components, events = self._components, self._components.events
        with self._under_way(tools) as described:
            try:
                can_stop, reached = await self._begin_step(can_stop)
                if reached is not None:
                    return await self._end(reached)
                started, is_replayed = time.perf_counter(), events.is_muted
                async with self._timed(started, is_replayed=is_replayed):
                    self.steps.append(await self._turns.take(events.step, can_stop, artifacts or {}, described))
                seconds = time.perf_counter() - started
                if len(self.steps) < events.step:  # its time was over
                    return await self._end_at_timeout(seconds)
                return await self._end_of_step(self.steps[-1].seconds if is_replayed else seconds)
            except Paused:
                self.is_interrupted = True
                if components.recorder is None or not components.recorder.top:
                    raise
                return await self._end('approval')
            except (Exception, asyncio.CancelledError) as error:
                self.is_interrupted = self.is_recorded
                if (stopped := self._taken_stop(error)) is not None:
                    await self._report_failure(stopped)
                    raise stopped from None
                await self._report_failure(error)
                raise

    @contextlib.contextmanager
    def _under_way(self, tools: Sequence[AnyTool]) -> Generator[str]:
        """The surroundings of a step. Yields text about tools that have changed, or are lent for this step."""
        self._check_ready()
        components = self._components
        recorder = components.recorder
        self.is_busy, self._task = True, asyncio.current_task()
        changed = components.offered.update(announce=bool(self.steps))
        token = parent_ledgers.set((components.ledger, *components.parent_ledgers))
        calling = calling_run.set(components.as_calling())
        try:
            with (
                Permit().entered(),
                contextlib.nullcontext() if recorder is None else recorder.scope.entered(),
                self.toolbox.lent(tools) if tools else contextlib.nullcontext() as lent,
            ):
                if lent is not None:
                    check_variables(components.spec.variables, lent.names())
                    changed = '\n\n'.join(filter(None, (changed, components.tools.describe(lent))))
                yield changed
        finally:
            calling_run.reset(calling)
            parent_ledgers.reset(token)
            self.is_busy, self._task = False, None

    def stop(self) -> None:
        """Stop the run: its step raises `RunStopped`. Thread-safe."""
        self._is_stopped = True
        if (task := self._task) is not None:
            task.get_loop().call_soon_threadsafe(self._cancel_step)

    def _cancel_step(self) -> None:
        if self._is_stopped and self._task is not None:
            self._task.cancel()

    def _taken_stop(self, error: BaseException) -> RunStopped | None:
        """The error to raise instead of a cancellation that `stop` caused; None for other errors."""
        task = self._task
        if not self._is_stopped or not isinstance(error, asyncio.CancelledError) or task is None:
            return None
        self._is_stopped = False
        return RunStopped(STOPPED, ended='stopped', run_id=self.id) if not task.uncancel() else None

    def _check_ready(self) -> None:
        if self._is_stopped:
            self._is_stopped = False
            raise RunStopped(STOPPED, ended='stopped', run_id=self.id)
        if self.result is not None and self.result.ended == 'answer':
            msg = 'this run has its answer; start another'
        elif self.is_busy:
            msg = 'this run is doing a step already'
        elif self.is_interrupted:
            msg = f'the last step of this run was not finished: resume it with agent.resume({self.id!r})'
        else:
            return
        raise AgentError(msg)

    async def _begin_step(self, can_stop: bool) -> tuple[bool, Ended | None]:
        """Whether the step may end the run, and the limit that is reached, with which the run ends instead."""
        components, number = self._components, len(self.steps) + 1
        events, recorder = components.events, components.recorder
        if recorder is not None:
            can_stop = await recorder.can_stop(number, can_stop)
        events.step = number
        events.is_muted = is_replayed = recorder is not None and recorder.is_replaying
        if not is_replayed and (reached := components.limit_reached(len(self.steps))):
            return can_stop, reached
        if components.checkpoints is not None and not self.steps and not is_replayed:
            await components.checkpoints.save(0)
        events.report(StepStarted)
        return can_stop, None

    @contextlib.asynccontextmanager
    async def _timed(self, started: float, *, is_replayed: bool) -> AsyncGenerator[None]:
        """Limit the time of the turn inside. A turn whose time is over is left without an error."""
        meter, events = self._components.meter, self._components.events
        try:
            async with asyncio.timeout(None) as timeout:
                events.on_live = functools.partial(self._start_clock, timeout)
                if not is_replayed:
                    events.go_live()
                yield
        except TimeoutError:
            if not meter.is_time_over():
                raise
        except BaseException:
            meter.add(time.perf_counter() - started)
            raise
        finally:
            events.on_live = None

    def _start_clock(self, timeout: asyncio.Timeout) -> None:
        """The step does something that is not in the record: from now on its time is limited."""
        meter = self._components.meter
        meter.go_live(len(self.steps), self._components.ledger.total)
        meter.start_clock(timeout)

    async def _end_of_step(self, seconds: float) -> Result[object] | None:
        components, turns, recorder = self._components, self._turns, self._components.recorder
        components.meter.add(seconds)
        if components.checkpoints is not None and not (recorder is not None and recorder.is_replaying):
            await components.checkpoints.save(len(self.steps), self.steps[-1].code or '')
        components.events.report(StepFinished, finished=self.steps[-1])
        if components.answer.is_given:
            return await self._end('answer', components.answer.value)
        question, turns.question = turns.question or self.toolbox.take_question(), None
        if question is not None and not (recorder is not None and recorder.is_behind):
            return await self._end('question', question=question)
        return await self._end('invalid_output') if turns.repairs > MAX_REPAIRS else None

    async def _end_at_timeout(self, seconds: float) -> Result[object]:
        components = self._components
        components.meter.add(seconds)
        if components.recorder is not None:
            self.is_interrupted, components.recorder.will_continue = True, False
        elif self._turns.reply is not None:
            step = timed_out_step(components, self._turns.reply, components.events.step)
            self.steps.append(replace(step, seconds=seconds))
        return await self._end('max_seconds')

    async def _report_failure(self, error: BaseException) -> None:
        """Record and emit why the run stopped. A cancelled run does not wait for its hooks: it is closed soon."""
        events, recorder = self._components.events, self._components.recorder
        events.is_muted = False
        if recorder is not None:
            await recorder.failed(error)
        events.report(RunFailed, error=error)
        if not isinstance(error, asyncio.CancelledError):
            await events.drain()

    async def _end(self, ended: Ended, output: object = None, question: str | None = None) -> Result[object]:
        self.result = await end_run(self._components, tuple(self.steps), ended, output=output, question=question)
        return self.result

    # Going on after an end --------------------------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """Add a message of a person: the answer to a question, or another task."""
        self._components.answer.withdraw()
        self.result, self._turns.repairs = None, 0
        self._components.conversation.add(Message(role='user', text=text), by_user=True)

    def set_observations(self, bounds: Bounds) -> None:
        """Change how much of its output the model is shown, from the next step on."""
        components = self._components
        components.tools.bounds = bounds
        if components.code is not None:
            components.code.bounds = bounds

    def limit_after_replay(self, limits: RunLimits | None) -> None:
        """Set the limits of what follows the record."""
        self._components.meter.after_replay = limits

    def leave_stopped_code(self, is_left: bool) -> None:
        """Whether code that the record has no outcome of stays stopped, instead of being run again."""
        if self._components.code is not None:
            self._components.code.leaves_stopped = is_left

    def extend(self, limits: RunLimits) -> None:
        """Continue after an end; `limits` count from here."""
        self.result = None
        self._turns.repairs = self._turns.empty_replies = 0
        self._components.meter.extend(limits, len(self.steps), self._components.ledger.total)

    async def close(self) -> None:
        """Free the sandbox and release the record; `agent.resume` can continue it from there."""
        if self.on_close is not None:
            await self.on_close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
