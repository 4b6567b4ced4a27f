"""`Agent`: give it a task, it writes Python until the task is done."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, Self, Unpack, cast

from typing_extensions import TypeVar

from habilis.agent.arguments import check_kinds
from habilis.agent.contract import Result, RunLimits
from habilis.agent.durable import Durable, Inputs, wait_here
from habilis.agent.options import AgentOptions, RunOptions, check_run, make_setup
from habilis.agent.output import OutputType
from habilis.agent.recording import Recorder
from habilis.agent.records import ResultCodec
from habilis.agent.replaying import catch_up
from habilis.agent.run import Run
from habilis.agent.start import Starting, start_run
from habilis.agent.watch import Hook
from habilis.core.background_loop import run_blocking
from habilis.core.codec import Json
from habilis.core.errors import AgentError, JournalError, RunBusy
from habilis.core.events import Event
from habilis.journal import OnChange, fingerprint, scope_here
from habilis.journal.answering import answer_run
from habilis.journal.copying import new_run_id
from habilis.models.config import ModelConfig
from habilis.models.contract import Model
from habilis.models.loader import load_model
from habilis.models.usage import Ledger

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
            name: of the agent, in events, usage and records.
            journal: where its runs are kept: a file, folder, address or `Store`, or `off`; None: as the settings say.
            settings: instead of those of the environment and `habilis.toml`.
        """
        self._which = model
        self._output_type = output_type
        self._setup = make_setup(model, options)
        self._model: Model | None = model if isinstance(model, Model) else None
        self._open: dict[str, Starting] = {}
        self._durable = Durable(self._setup.journal)
        self._closed = False
        self.ledger = Ledger()
        """What all runs of this agent have used."""

    @property
    def name(self) -> str:
        """Of the agent, in events and usage."""
        return self._setup.name

    @property
    def output_type(self) -> type[T] | None:
        """What an answer must be; None for anything."""
        return self._output_type

    @property
    def model(self) -> Model:
        """The model that is asked. It is looked for when it is first needed."""
        if self._model is None:
            self._model = load_model(self._which, settings=self._setup.settings)
        return self._model

    # Runs -------------------------------------------------------------------------------------------------------------

    async def run(self, task: str, **options: Unpack[RunOptions]) -> Result[T]:
        """Do a task, to its end or to a limit. Inside a flow or a tool of another run it is recorded as part of that.

        Args:
            task: what to do, in words.
            variables: plain data the code finds under these names; `Result.variables` has them as it left them.
            artifacts: named documents for the first step.
            history: messages of an earlier run to go on from.
            limits: instead of the agent's.
            max_steps: the same for steps alone.
            hooks: for this run, after the agent's.
            run_id: a name for it, to resume it by; one is made up otherwise.
            user: whose run it is, where several people share a journal.
            session: the conversation it belongs to; without `history` it goes on from the last run there.
            meta: plain data to keep with the run, for whoever resumes it.
        """
        check_run(task, options)
        scope = scope_here()
        if scope is None:
            run = await self.start(task, **options)
            return await self._finish(run, options.get('artifacts') or {})
        said = [(message.role, message.text) for message in options.get('history') or ()]
        key = fingerprint(task, options.get('variables') or {}, options.get('artifacts') or {}, *said)
        kind = ResultCodec(OutputType(self._output_type))
        return await scope.step(
            self.name, lambda: self._run_inside(task, options), key=key, codec=kind, opening={'task': task}
        )

    async def _run_inside(self, task: str, options: RunOptions) -> Result[T]:
        scope = scope_here()
        assert scope is not None
        recorder = Recorder(scope, top=False, task=task)
        run = await self._begin(f'{scope.journal.run}/{scope.path}', task, options, recorder)
        return await self._finish(run, options.get('artifacts') or {})

    def run_sync(self, task: str, **options: Unpack[RunOptions]) -> Result[T]:
        """`run` without `await`; works inside a running event loop too (Jupyter)."""
        return wait_here(self.run(task, **options))

    async def stream(self, task: str, **options: Unpack[RunOptions]) -> AsyncGenerator[Event, None]:
        """Do a task and give its events as they happen; the last is `run_finished`, with the `Result` as data."""
        queue: asyncio.Queue[Event] = asyncio.Queue()
        check_run(task, options)
        hooks = (*(options.get('hooks') or ()), queue.put_nowait)
        work = asyncio.ensure_future(self.run(task, **{**options, 'hooks': hooks}))
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

    async def start(self, task: str, **options: Unpack[RunOptions]) -> Run:
        """A run to be done step by step: `await run.step()` until it gives a result. Close it then, or the agent.

        Takes what `run` takes; artifacts are given to the steps instead.
        """
        check_run(task, options)
        scope = scope_here()
        if scope is not None:
            below = scope.below(self.name)
            recorder = Recorder(below, top=False, task=task)
            return await self._begin(f'{below.journal.run}/{below.path}', task, options, recorder)
        return await self._begin(options.get('run_id') or new_run_id(), task, options, None)

    async def _begin(self, run_id: str, task: str, options: RunOptions, recorder: Recorder | None) -> Run:
        self._check_open()
        user, session = options.get('user') or self._setup.settings.user or '', options.get('session') or ''
        history = tuple(options.get('history') or ())
        if session and not history and recorder is None:
            history = await self._durable.last_messages(user, session)
        inputs = Inputs(
            task=task,
            model=(await self._loaded()).name,
            variables=options.get('variables') or {},
            artifacts=options.get('artifacts') or {},
            history=history,
            limits=_limits(options.get('limits') or self._setup.limits, options.get('max_steps')),
            meta=options.get('meta') or {},
        )
        if recorder is None:
            recorder = await self._durable.begin(run_id, self.name, inputs, user=user, session=session)
        try:
            started = await self._start(run_id, inputs, recorder, options.get('hooks') or ())
            if recorder is not None:
                await recorder.open(replace(inputs, system=started.system, asked=started.asked))
        except BaseException as error:
            if recorder is not None:
                with contextlib.suppress(JournalError):
                    await recorder.failed(error)
                await recorder.close()
            await self._leave(run_id)
            raise
        return started.run

    async def _start(
        self, run_id: str, inputs: Inputs, recorder: Recorder | None, hooks: Iterable[Hook] = ()
    ) -> Starting:
        started = await start_run(
            self._setup,
            model=await self._loaded(),
            output_type=self._output_type,
            run_id=run_id,
            task=inputs.task,
            variables=inputs.variables,
            history=inputs.history,
            limits=inputs.limits,
            hooks=(*self._setup.hooks, *hooks),
            ledger=self.ledger.child(self._setup.name),
            recorder=recorder,
        )
        started = replace(started, artifacts=inputs.artifacts)
        started.run.free = functools.partial(self._free, started)
        self._open[run_id] = started
        return started

    async def _loaded(self) -> Model:
        if self._model is None:
            self._model = await asyncio.to_thread(load_model, self._which, settings=self._setup.settings)
        return self._model

    async def resume(
        self,
        run_id: str,
        answer: str | None = None,
        *,
        limits: RunLimits | None = None,
        max_steps: int | None = None,
        hooks: Sequence[Hook] = (),
        user: str | None = None,
        on_change: OnChange = 'fail',
    ) -> Result[T]:
        """Go on with a run that stopped at a limit, an error or a question, or whose process died, also elsewhere.

        Nothing that is in its record is asked, run or called again, and its variables are back. A run that has its
        answer gives it once more.

        Args:
            run_id: of `Result.run_id`.
            answer: to its question, or something more to tell it.
            limits: for what is to come; without them it gets as much again as it had.
            max_steps: the same for steps alone.
            hooks: for what is to come, after the agent's.
            user: whose run it must be.
            on_change: what to do where the record no longer fits: `fail`, `continue` from there, or `fork`.
        """
        self._check_open()
        check_kinds('resume', {'limits': limits, 'hooks': hooks})
        bounds = _limits(limits or self._setup.limits, max_steps)
        if run_id in self._open and self._open[run_id].run.interrupted:
            await self._leave(run_id)  # what was done of its last step is in the record
        if run_id in self._open:
            run = self._open[run_id].run
            if run.busy:
                msg = f'{run_id} is being worked on by this agent; wait until it has ended'
                raise RunBusy(msg)
            if run.result is not None and run.result.ended == 'answer' and answer is None:
                await self._leave(run_id)
                return cast('Result[T]', run.result)
            _check_answer(run.result.ended if run.result is not None else None, answer)
            run.go_on(bounds)
            if answer is not None:
                run.tell(answer)
            return await self._finish(run, {} if run.steps else self._open[run_id].artifacts)
        if self._durable.off:
            msg = f'this agent has no unfinished run {run_id!r}'
            raise AgentError(msg)
        found = await self._durable.find(run_id, user=self._whose(user), on_change=on_change)
        try:
            if found.done is not None:
                written = await found.recorder.journal.value_of(found.done)
                result = ResultCodec(OutputType(self._output_type)).read(written)
                await found.recorder.finish()
                await found.recorder.close()
                return cast('Result[T]', replace(result, run_id=found.recorder.journal.run))
            _check_answer(found.stopped, answer)
            more = None if found.stopped in {None, 'approval'} and limits is None and max_steps is None else bounds
            started = await self._start(run_id, found.inputs, found.recorder, hooks)
            result = await catch_up(started.run, found, answer=answer, limits=more)
        except BaseException:
            await self._leave(run_id)
            await found.recorder.close()
            raise
        if result is not None:
            await self._leave(run_id)
            return cast('Result[T]', result)
        return await self._finish(started.run, {} if started.run.steps else found.inputs.artifacts)

    def resume_sync(self, run_id: str, answer: str | None = None, **options: Any) -> Result[T]:
        """`resume` without `await`."""
        return wait_here(self.resume(run_id, answer, **options))

    async def answer(self, run_id: str, answer: Json, *, path: str | None = None, user: str | None = None) -> None:
        """Answer what a run waits for (`Result.waiting`); `resume` it then.

        Args:
            run_id: of the run.
            answer: True or False for an approval; for a step that may have been done `{'again': True}` to do it now,
                or `{'value': …}` with what came of it.
            path: which question, if there are several.
            user: whose run it must be.
        """
        if run_id in self._open and self._open[run_id].run.interrupted:
            await self._leave(run_id)
        await answer_run(self._durable.store, run_id, answer, path=path, user=self._whose(user))

    def _whose(self, user: str | None) -> str | None:
        """Whose runs may be touched: those of anybody only where nobody is named."""
        return user if user is not None else self._setup.settings.user or None

    async def _finish(self, run: Run, artifacts: Mapping[str, str]) -> Result[T]:
        result: Result[object] | None = None
        try:
            while result is None:
                result = await run.step(artifacts=artifacts)
                artifacts = {}
        except Exception:
            if run.recorded:
                await self._leave(run.id)
            raise
        except BaseException:
            await self._leave(run.id)
            raise
        if result.ended == 'answer' or run.recorded:
            await self._leave(run.id)
        return cast('Result[T]', result)

    async def _leave(self, run_id: str) -> None:
        started = self._open.pop(run_id, None)
        if started is not None:
            await started.close()

    async def _free(self, started: Starting) -> None:
        if self._open.get(started.run.id) is started:  # and not the same run, resumed
            await self._leave(started.run.id)

    def _check_open(self) -> None:
        if self._closed:
            msg = 'this agent is closed'
            raise AgentError(msg)

    # The end ----------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the sandboxes of unfinished runs, and the model if the agent has made it."""
        self._closed = True
        for run_id in list(self._open):
            await self._leave(run_id)
        await self._durable.close()
        if self._model is not None and self._model is not self._which:
            await self._model.close()

    def close_sync(self) -> None:
        """`close` without `await`."""
        run_blocking(self.close())

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


def _check_answer(ended: str | None, answer: str | None) -> None:
    if ended == 'question' and answer is None:
        msg = 'the run ended with a question: pass the answer'
        raise AgentError(msg)


def _limits(limits: RunLimits, max_steps: int | None) -> RunLimits:
    return limits if max_steps is None else replace(limits, steps=max_steps)
