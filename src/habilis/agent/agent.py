"""`Agent`: give it a task, and it writes Python until the task is done."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, Generic, Never, Self, cast

from typing_extensions import TypeVar

from habilis.agent.context.output import OutputType
from habilis.agent.context.truncation import Bounds
from habilis.agent.contract import Result, RunLimits
from habilis.agent.durable.codecs import ResultCodec
from habilis.agent.durable.recorder import Recorder
from habilis.agent.durable.replay import replay
from habilis.agent.durable.runs import Inputs, JournalChoice, RunStore, wait_here
from habilis.agent.events import AgentEvent
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.hooks.status import status_hooks
from habilis.agent.hooks.stream import stream_events
from habilis.agent.loop.run import Run
from habilis.agent.loop.sandboxes import SandboxChoice
from habilis.agent.loop.setup import check_inputs, start_run
from habilis.agent.loop.started_run import RunInputs, StartedRun
from habilis.agent.options import (
    RUN_OPTIONS,
    AgentSetup,
    AnyTool,
    ModelChoice,
    OnDisagreement,
    RunRequest,
    bounds_from,
    check_names,
    check_types,
    limits_from,
    make_request,
    sandbox_settings_from,
    summary_prompt,
    takes_parameters_of,
    with_max_steps,
)
from habilis.agent.policies import Policy
from habilis.core.background_loop import run_blocking
from habilis.core.codec import Json
from habilis.core.errors import AgentError, JournalError, RunBusy
from habilis.core.settings import Settings, load_settings
from habilis.journal import OnChange, fingerprint, recording_scope
from habilis.journal.copies import new_run_id
from habilis.journal.questions import answer_run
from habilis.models.contract import Model
from habilis.models.loader import load_model
from habilis.models.usage import Ledger
from habilis.sandbox.options import PathLike
from habilis.sandbox.options import Settings as SandboxSettings
from habilis.tools import Approve, Gate, ResultGate

T = TypeVar('T', default=Any)


class Agent(Generic[T]):
    """A model, its tools and its sandbox. One agent can do many runs, also at the same time."""

    def __init__(
        self,
        model: ModelChoice | None = None,
        *,
        output_type: type[T] | None = None,
        tools: Iterable[AnyTool] = (),
        sandbox: SandboxChoice | None = None,
        workspace: PathLike | bool | None = None,
        sandbox_settings: SandboxSettings | None = None,
        instructions: str = '',
        limits: RunLimits | None = None,
        observations: Bounds | None = None,
        summary: str | None = None,
        python: bool = True,
        hooks: Iterable[Hook] = (),
        gates: Iterable[Gate | ResultGate] = (),
        approve: Approve | None = None,
        name: str = 'agent',
        policy: str | Policy | None = None,
        agree: int = 1,
        on_disagreement: OnDisagreement = 'first',
        escalate: ModelChoice | None = None,
        journal: JournalChoice = None,
        settings: Settings | None = None,
        **unknown: Never,
    ) -> None:
        """Nothing is started or downloaded yet.

        Args:
            model: `provider:model`, an alias, or a `Model`; None: the configured one, else the first that is found.
            output_type: type of the answer: `int`, `list[str]`, a dataclass, a pydantic model.
            tools: functions the code may call, and toolsets.
            sandbox: a backend by name (a new sandbox for each run), a `Sandbox`, or several by name.
            workspace: host folder for files, at `/workspace` inside; True for a temporary one.
            sandbox_settings: more settings of `Sandbox.create`.
            instructions: text added to the system prompt.
            limits: limits of a run.
            observations: how much of its output the model is shown.
            summary: `off`, `default`, or the prompt of a last request that summarizes the run.
            python: False to let the model only call functions.
            hooks: called with every event; see `habilis.agent.hooks`.
            gates: see each tool call first; may deny or change it, or ask.
            approve: asks a person about tool calls that need it.
            name: name of the agent in events, usage and records.
            policy: `general`, `small`, or a `Policy`; None: by the model (`small` for models declared so).
            agree: number of independent solutions to compare; 1 for no comparison. See `Result.agreement`.
            on_disagreement: `first` takes the first answer, `ask` ends the run with a question to a person.
            escalate: a larger model that the task is handed to on disagreement.
            journal: where runs are recorded: a file, folder, URL or `Store`, or `off`; None: as the settings say.
            settings: instead of those of the environment and `habilis.toml`.
        """
        given = {name: value for name, value in locals().items() if name not in ('self', 'unknown')}
        check_names('Agent', unknown, _AGENT_OPTIONS, {'run(…)': {*RUN_OPTIONS} - {'max_steps'}})
        check_types('Agent', given)
        settings = settings or load_settings()
        sandbox = settings.sandbox if sandbox is None else sandbox
        self._setup = AgentSetup(
            tools=tuple(tools or ()),
            sandbox=sandbox,
            sandbox_settings=sandbox_settings_from(sandbox_settings or {}, workspace, sandbox, settings),
            instructions=instructions,
            limits=limits or limits_from(settings),
            observations=observations or bounds_from(settings),
            summary=summary_prompt(settings.summary if summary is None else summary),
            python=python,
            hooks=tuple(hooks or ()),
            gates=tuple(gates or ()),
            approve=approve,
            name=name,
            policy=policy,
            agree=agree,
            on_disagreement=on_disagreement,
            escalate=escalate,
            journal=journal or settings.journal,
            settings=settings,
        )
        self._choice = model
        self._output_type = output_type
        self._model: Model | None = model if isinstance(model, Model) else None
        self._larger: Model | None = escalate if isinstance(escalate, Model) else None
        self._open: dict[str, StartedRun] = {}
        self._runs = RunStore(self._setup.journal)
        self._is_closed = False
        self.ledger = Ledger()
        """Usage of all runs of this agent."""

    @property
    def name(self) -> str:
        """Name of the agent in events, usage and records."""
        return self._setup.name

    @property
    def output_type(self) -> type[T] | None:
        """Type of the answer; None for anything."""
        return self._output_type

    @property
    def model(self) -> Model:
        """The model, which is loaded when it is first needed."""
        if self._model is None:
            self._model = load_model(self._choice, settings=self._setup.settings)
        return self._model

    def _load_larger(self) -> Model:
        if self._larger is None:
            self._larger = load_model(self._setup.escalate, settings=self._setup.settings)
        return self._larger

    # Runs -------------------------------------------------------------------------------------------------------------

    @takes_parameters_of(RunRequest)
    async def run(self, task: str, **options: Any) -> Result[T]:
        """Do a task, to its end or to a limit. Inside a flow or a tool of another run it is recorded as part of that.

        Args:
            task: what to do, in words.
            options: see `RunRequest`.
        """
        request = make_request(task, options, _AGENT_OPTIONS)
        scope = recording_scope()
        if scope is None:
            return await self._finish(await self._start(request), request.artifacts or {})
        said = [(message.role, message.text) for message in request.history or ()]
        key = fingerprint(task, request.variables or {}, request.artifacts or {}, *said)
        codec = ResultCodec(OutputType(self._output_type))
        return await scope.step(
            self.name, lambda: self._run_nested(request), key=key, codec=codec, opening={'task': task}
        )

    async def _run_nested(self, request: RunRequest) -> Result[T]:
        scope = recording_scope()
        assert scope is not None
        recorder = Recorder(scope, top=False, task=request.task)
        run = await self._begin(f'{scope.journal.run}/{scope.path}', request, recorder)
        return await self._finish(run, request.artifacts or {})

    @takes_parameters_of(RunRequest)
    def run_sync(self, task: str, **options: Any) -> Result[T]:
        """`run` without `await`; works inside a running event loop too (Jupyter)."""
        with status_hooks(self._setup.settings, self._setup.hooks, options.get('hooks')) as hooks:
            return wait_here(self.run(task, **(options | dict[str, Any](hooks=hooks))))

    @takes_parameters_of(RunRequest)
    def stream(self, task: str, **options: Any) -> AsyncGenerator[AgentEvent, None]:
        """Do a task and yield its events as they happen; the last is `RunFinished`, with the `Result`."""
        hooks: Any = make_request(task, options, _AGENT_OPTIONS).hooks or ()
        return stream_events(lambda hook: self.run(task, **(options | dict[str, Any](hooks=(*hooks, hook)))))

    @takes_parameters_of(RunRequest)
    async def start(self, task: str, **options: Any) -> Run:
        """Start a run to be done step by step: `await run.step()` until it returns a result. Then close the run.

        Takes the parameters of `run`; artifacts are passed to the steps instead.
        """
        return await self._start(make_request(task, options, _AGENT_OPTIONS))

    async def _start(self, request: RunRequest) -> Run:
        scope = recording_scope()
        if scope is None:
            return await self._begin(request.run_id or new_run_id(), request, None)
        below = scope.below(self.name)
        recorder = Recorder(below, top=False, task=request.task)
        return await self._begin(f'{below.journal.run}/{below.path}', request, recorder)

    async def _begin(self, run_id: str, request: RunRequest, recorder: Recorder | None) -> Run:
        self._check_open()
        check_inputs(self._setup, request.variables or {})
        user, session = request.user or self._setup.settings.user or '', request.session or ''
        history = tuple(request.history or ())
        if session and not history and recorder is None:
            history = await self._runs.last_messages(user, session)
        inputs = Inputs(
            task=request.task,
            model=(await self._loaded_model()).name,
            variables=request.variables or {},
            artifacts=request.artifacts or {},
            history=history,
            limits=request.limits_or(self._setup.limits),
            meta=request.meta or {},
        )
        if recorder is None:
            recorder = await self._runs.create(run_id, self.name, inputs, user=user, session=session)
        try:
            started = await self._open_run(run_id, inputs, recorder, request.hooks or ())
            if recorder is not None:
                await recorder.open(inputs, started.prompt)
        except BaseException as error:
            if recorder is not None:
                with contextlib.suppress(JournalError):
                    await recorder.failed(error)
                await recorder.close()
            await self._close_run(run_id)
            raise
        return started.run

    async def _open_run(
        self, run_id: str, inputs: Inputs, recorder: Recorder | None, hooks: Iterable[Hook] = ()
    ) -> StartedRun:
        started = await start_run(
            self._setup,
            RunInputs(
                run_id=run_id,
                task=inputs.task,
                model=await self._loaded_model(),
                output_type=self._output_type,
                limits=inputs.limits,
                ledger=self.ledger.child(self._setup.name),
                variables=inputs.variables,
                artifacts=inputs.artifacts,
                history=inputs.history,
                hooks=(*self._setup.hooks, *hooks),
                recorder=recorder,
                load_larger=self._load_larger if self._setup.escalate is not None else None,
            ),
        )
        started.run.on_close = functools.partial(self._close_started, started)
        self._open[run_id] = started
        return started

    async def _loaded_model(self) -> Model:
        if self._model is None:
            self._model = await asyncio.to_thread(load_model, self._choice, settings=self._setup.settings)
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
        """Resume a run that stopped at a limit, an error or a question, or whose process died, also in another process.

        Nothing that is in its record is asked, run or called again, and its variables are restored. A run that has its
        answer returns it again.

        Args:
            run_id: `Result.run_id`.
            answer: the answer to its question, or another message.
            limits: limits for what follows; by default those of the agent, counted anew.
            max_steps: limit of steps for what follows.
            hooks: hooks for what follows, after the agent's.
            user: whose run it must be.
            on_change: what to do if the record no longer fits: `fail`, `continue` from there, or `fork`.
        """
        self._check_open()
        check_types('resume', {'limits': limits, 'hooks': hooks})
        bounds = with_max_steps(limits or self._setup.limits, max_steps)
        started = await self._continuable(run_id, user)
        if started is not None:
            return await self._resume_open(started, answer, bounds)
        if self._runs.is_off:
            msg = f'this agent has no unfinished run {run_id!r}'
            raise AgentError(msg)
        loaded = await self._runs.load(run_id, user=self._user(user), on_change=on_change)
        try:
            if loaded.done is not None:
                return await loaded.result(OutputType(self._output_type))
            _check_answer(loaded.stopped, answer)
            is_same = loaded.stopped in {None, 'approval'} and limits is None and max_steps is None
            started = await self._open_run(run_id, loaded.inputs, loaded.recorder, hooks)
            if not loaded.prompted:  # the process died while it started
                await loaded.recorder.open(loaded.inputs, started.prompt)
            result = await replay(started.run, loaded, answer=answer, limits=None if is_same else bounds)
        except BaseException:
            await self._close_run(run_id)
            await loaded.recorder.close()
            raise
        if result is not None:
            await self._close_run(run_id)
            return cast('Result[T]', result)
        return await self._finish(started.run, {} if started.run.steps else loaded.inputs.artifacts)

    async def _resume_open(self, started: StartedRun, answer: str | None, limits: RunLimits) -> Result[T]:
        """Resume a run of this process that is still open."""
        run = started.run
        if run.is_busy:
            msg = f'{run.id} is already running in this agent; wait until it has ended'
            raise RunBusy(msg)
        if run.result is not None and run.result.ended == 'answer' and answer is None:
            await self._close_run(run.id)
            return cast('Result[T]', run.result)
        _check_answer(run.result.ended if run.result is not None else None, answer)
        run.extend(limits)
        if answer is not None:
            run.tell(answer)
        return await self._finish(run, {} if run.steps else started.artifacts)

    def resume_sync(self, run_id: str, answer: str | None = None, **options: Any) -> Result[T]:
        """`resume` without `await`."""
        return wait_here(self.resume(run_id, answer, **options))

    async def answer(self, run_id: str, answer: Json, *, path: str | None = None, user: str | None = None) -> None:
        """Answer what a run waits for (`Result.waiting`); then `resume` it.

        Args:
            run_id: the run.
            answer: True or False for approvals; `{'again': True}` or `{'value': …}` for a step that may have been done.
            path: which question, if there are several.
            user: whose run it must be.
        """
        await self._continuable(run_id, user)
        await answer_run(self._runs.store, run_id, answer, path=path, user=self._user(user))

    def _user(self, user: str | None) -> str | None:
        """The user whose runs may be touched; None for anybody's, where no user is configured."""
        return user if user is not None else self._setup.settings.user or None

    async def _continuable(self, run_id: str, user: str | None) -> StartedRun | None:
        """The run, if it is open here. An interrupted one is closed: what was done of its last step is recorded."""
        started = self._open.get(run_id)
        if started is None or not started.check_user(self._user(user)).run.is_interrupted:
            return started
        return await self._close_run(run_id)

    async def _finish(self, run: Run, artifacts: Mapping[str, str]) -> Result[T]:
        result: Result[object] | None = None
        try:
            while result is None:
                result = await run.step(artifacts=artifacts)
                artifacts = {}
        except Exception:
            if run.is_recorded:
                await self._close_run(run.id)
            raise
        except BaseException:
            await self._close_run(run.id)
            raise
        if result.ended == 'answer' or run.is_recorded:
            await self._close_run(run.id)
        return cast('Result[T]', result)

    async def _close_run(self, run_id: str) -> None:
        started = self._open.pop(run_id, None)
        if started is not None:
            await started.close()

    async def _close_started(self, started: StartedRun) -> None:
        if self._open.get(started.run.id) is started:  # and not the same run, resumed
            await self._close_run(started.run.id)

    def _check_open(self) -> None:
        if self._is_closed:
            msg = 'this agent is closed'
            raise AgentError(msg)

    # Closing ----------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the sandboxes of unfinished runs, and the models that the agent has loaded."""
        self._is_closed = True
        for run_id in list(self._open):
            await self._close_run(run_id)
        await self._runs.close()
        for model, choice in ((self._model, self._choice), (self._larger, self._setup.escalate)):
            if model is not None and model is not choice:
                await model.close()

    def close_sync(self) -> None:
        """`close` without `await`."""
        run_blocking(self.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close_sync()


_AGENT_OPTIONS = tuple(name for name in signature(Agent).parameters if name not in ('self', 'unknown'))


def _check_answer(ended: str | None, answer: str | None) -> None:
    if ended == 'question' and answer is None:
        msg = 'the run ended with a question: pass the answer'
        raise AgentError(msg)
