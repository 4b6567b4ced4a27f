"""`Agent`: give it a task, and it writes Python until the task is done."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, Never, cast, overload

from typing_extensions import TypeVar, Unpack

from habilis.agent.chat import Chat
from habilis.agent.context.instructions import Instructions
from habilis.agent.context.truncation import Bounds
from habilis.agent.contract import Result, RunLimits
from habilis.agent.decorators import Decorators
from habilis.agent.delegation import helpers_from
from habilis.agent.description import agent_html, agent_repr
from habilis.agent.durable.runs import JournalChoice, wait_here
from habilis.agent.events import StreamEvent
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.hooks.status import status_hooks
from habilis.agent.hooks.stream import stream_events
from habilis.agent.library import LibraryChoice
from habilis.agent.loop.output_validators import OutputValidator
from habilis.agent.loop.run import Run
from habilis.agent.loop.sandboxes import SandboxChoice
from habilis.agent.options import (
    RUN_OPTIONS,
    AgentSetup,
    AnyTool,
    Helpers,
    ModelChoice,
    ModelSettings,
    OnDisagreement,
    ResumeRequest,
    RunOptions,
    RunRequest,
    Task,
    bounds_from,
    check_model_settings,
    check_types,
    checked_library,
    limits_from,
    sandbox_settings_from,
    split_task,
    summary_prompt,
)
from habilis.agent.policies import Policy as LoopPolicy
from habilis.agent.runner import Runner
from habilis.agent.wrong_guesses import check_names, missing_attribute
from habilis.core.closing import Closing
from habilis.core.codec import Json
from habilis.core.settings import Settings, load_settings
from habilis.journal import OnChange
from habilis.models.contract import Message, Model
from habilis.models.usage import Ledger
from habilis.sandbox.options import PathLike
from habilis.sandbox.options import Settings as SandboxSettings
from habilis.sandbox.policy import Policy
from habilis.tools import Approve, Gate, ResultGate

T = TypeVar('T', default=Any)
U = TypeVar('U')


class Agent(Decorators, Closing, Generic[T]):
    """A model, its tools and its sandbox. One agent can do many runs, also at the same time."""

    def __init__(
        self,
        model: ModelChoice | None = None,
        *,
        model_settings: ModelSettings | None = None,
        output_type: type[T] | UnionType | None = None,
        output_validators: Iterable[OutputValidator] = (),
        tools: Iterable[AnyTool] = (),
        helpers: Helpers | bool = False,
        library: LibraryChoice | None = None,
        deps_type: Any = None,
        instructions: Instructions = '',
        limits: RunLimits | None = None,
        workspace: PathLike | bool | None = None,
        packages: Iterable[PathLike] | None = None,
        network: bool | Iterable[str] | None = None,
        policy: Policy | None = None,
        sandbox: SandboxChoice | None = None,
        sandbox_settings: SandboxSettings | None = None,
        python: bool = True,
        talk: bool = False,
        observations: Bounds | None = None,
        summary: str | None = None,
        hooks: Iterable[Hook] = (),
        gates: Iterable[Gate | ResultGate] = (),
        approve: Approve | None = None,
        name: str = 'agent',
        loop_policy: str | LoopPolicy | None = None,
        agree: int = 1,
        on_disagreement: OnDisagreement = 'first',
        escalate: ModelChoice | None = None,
        journal: JournalChoice = None,
        checkpoints: bool = False,
        settings: Settings | None = None,
        **unknown: Never,
    ) -> None:
        """Nothing is started or downloaded yet.

        Args:
            model: `provider:model`, an alias, or a `Model`; None: the configured one, else the first that is found.
            model_settings: `temperature`, `max_tokens`, `timeout`, `base_url`, `api_key` and more of the model.
            output_type: type of the answer: `int`, `list[str]`, `int | str`, a dataclass, a pydantic model.
            output_validators: functions of the answer, or of context and answer: return it, or raise `ModelRetry`.
            tools: functions the code may call, toolsets, and other agents.
            helpers: True to let code start subagents with `delegate`; or more kinds of them, by name.
            library: a tool library to find tools in and build new ones for: folder, `Library`, True for the settings'.
            deps_type: type of the dependencies that `run(…, deps=…)` must be given, for tools with a `Context`.
            instructions: text for the system prompt, a function of nothing or the `Context` that returns it, or a list.
            limits: limits of a run.
            workspace: host folder for files, at `/workspace` inside; True for a temporary one.
            packages: pure-Python packages that the code may import, such as `attrs==25.3`.
            network: hosts that the code may reach, such as `['api.example.com']`; True for all public, default none.
            policy: rules for the code, such as `Policy(imports=('math',))`.
            sandbox: a backend by name (a new sandbox for each run), a `Sandbox`, or several by name.
            sandbox_settings: more settings of `Sandbox.create`.
            python: False to let the model only call functions.
            talk: True if tasks are what a person says in a conversation: the model may answer in words alone.
            observations: how much of its output the model is shown.
            summary: `off`, `default`, or the prompt of a last request that summarizes the run.
            hooks: called with every event; see `habilis.agent.hooks`.
            gates: see each tool call first; may deny or change it, or ask.
            approve: asks a person about tool calls that need it.
            name: name of the agent in events, usage and records.
            loop_policy: `general`, `small`, or a `habilis.agent.Policy`; None: by the model.
            agree: number of independent solutions to compare; 1 for no comparison. See `Result.agreement`.
            on_disagreement: `first` takes the first answer, `ask` ends the run with a question to a person.
            escalate: a larger model that the task is handed to on disagreement.
            journal: where runs are recorded: a file, folder, URL or `Store`, or `off`; None: as the settings say.
            checkpoints: store the files of the workspace after each step that changed some; needs git and a journal.
            settings: instead of those of the environment and `habilis.toml`.
        """
        given = {name: value for name, value in locals().items() if name not in ('self', 'unknown')}
        check_names('Agent', unknown, _AGENT_OPTIONS, {'run(…)': {*RUN_OPTIONS} - {'max_steps'}})
        check_types('Agent', given)
        check_model_settings(model, model_settings)
        settings = settings or load_settings()
        sandbox = settings.sandbox if sandbox is None else sandbox
        named = {'workspace': workspace, 'packages': packages, 'network': network, 'policy': policy}
        self._runner = Runner(
            AgentSetup(
                model=model,
                model_settings=model_settings or {},
                output_type=output_type,
                output_validators=tuple(output_validators or ()),
                tools=tuple(tools or ()),
                helpers=helpers_from(helpers),
                library=checked_library(library, python=python),
                deps_type=deps_type,
                sandbox=sandbox,
                sandbox_settings=sandbox_settings_from(sandbox_settings or {}, named, sandbox, settings),
                instructions=instructions,
                limits=limits or limits_from(settings),
                observations=observations or bounds_from(settings),
                summary=summary_prompt(settings.summary if summary is None else summary),
                python=python,
                talk=talk,
                hooks=tuple(hooks or ()),
                gates=tuple(gates or ()),
                approve=approve,
                name=name,
                loop_policy=loop_policy,
                agree=agree,
                on_disagreement=on_disagreement,
                escalate=escalate,
                journal=journal or settings.journal,
                checkpoints=checkpoints,
                settings=settings,
            ),
            self,
        )

    @property
    def name(self) -> str:
        """Name of the agent in events, usage and records."""
        return self._runner.setup.name

    @property
    def output_type(self) -> type[T] | None:
        """Type of the answer; None for anything."""
        return cast('type[T] | None', self._runner.setup.output_type)

    @property
    def model(self) -> Model:
        """The model, which is loaded when it is first needed."""
        return self._runner.model

    @property
    def ledger(self) -> Ledger:
        """Usage of all runs of this agent."""
        return self._runner.ledger

    def __repr__(self) -> str:
        return agent_repr(self._runner.setup)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return agent_html(self._runner.setup)

    # Hidden from type checkers, which would otherwise accept any misspelt name.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise missing_attribute('Agent', name, dir(type(self)))

    def conversation(self, session: str | None = None, *, user: str | None = None) -> Chat[T]:
        """A conversation whose turns share messages and variables. Another process continues it by its `session`."""
        return self._runner.conversation(session, user)

    # Runs -------------------------------------------------------------------------------------------------------------

    @overload
    async def run(self, task: Task, *, output_type: None = None, **options: Unpack[RunOptions]) -> Result[T]: ...

    @overload
    async def run(self, task: Task, *, output_type: type[U], **options: Unpack[RunOptions]) -> Result[U]: ...

    @overload
    async def run(self, task: Task, *, output_type: UnionType, **options: Unpack[RunOptions]) -> Result[Any]: ...

    async def run(
        self,
        task: Task,
        *,
        output_type: Any = None,
        tools: Sequence[AnyTool] | None = None,
        deps: object = None,
        variables: Mapping[str, object] | None = None,
        artifacts: Mapping[str, str] | None = None,
        history: Sequence[Message] | None = None,
        limits: RunLimits | None = None,
        max_steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        run_id: str | None = None,
        resume: bool = False,
        user: str | None = None,
        session: str | None = None,
        meta: Mapping[str, object] | None = None,
        **unknown: Never,
    ) -> Result[Any]:
        """Do a task, to its end or to a limit. Inside a flow or a tool of another run it is recorded as part of that.

        Args:
            task: what to do, in words; or a list of words, `Image(…)` and `File(…)`.
            output_type: type of the answer of this run, instead of the agent's.
            tools: more tools for this run.
            deps: what tools with a `Context` work with; neither shown to the model nor recorded.
            variables: plain data that code finds under these names; `Result.variables` has them as code left them.
            artifacts: named documents for the first step.
            history: messages of an earlier run to continue from.
            limits: limits of this run, instead of the agent's.
            max_steps: limit of steps, instead of the agent's.
            hooks: hooks of this run, after the agent's.
            run_id: name to resume it by; generated if absent.
            resume: resume the run of that name if it exists, instead of refusing the name.
            user: owner of the run, where several people share a journal.
            session: conversation it belongs to; without `history` it continues the last run of that session.
            meta: plain data kept with the run.
        """
        return await self._runner.run(_request(locals()))

    @overload
    def run_sync(self, task: Task, *, output_type: None = None, **options: Unpack[RunOptions]) -> Result[T]: ...

    @overload
    def run_sync(self, task: Task, *, output_type: type[U], **options: Unpack[RunOptions]) -> Result[U]: ...

    @overload
    def run_sync(self, task: Task, *, output_type: UnionType, **options: Unpack[RunOptions]) -> Result[Any]: ...

    def run_sync(
        self,
        task: Task,
        *,
        output_type: Any = None,
        tools: Sequence[AnyTool] | None = None,
        deps: object = None,
        variables: Mapping[str, object] | None = None,
        artifacts: Mapping[str, str] | None = None,
        history: Sequence[Message] | None = None,
        limits: RunLimits | None = None,
        max_steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        run_id: str | None = None,
        resume: bool = False,
        user: str | None = None,
        session: str | None = None,
        meta: Mapping[str, object] | None = None,
        **unknown: Never,
    ) -> Result[Any]:
        """`run` without `await`, with the same options; works inside a running event loop too (Jupyter)."""
        request, setup = _request(locals()), self._runner.setup
        with status_hooks(setup.settings, setup.hooks, request.hooks) as shown:
            return wait_here(self._runner.run(replace(request, hooks=shown)))

    @overload
    def stream(
        self, task: Task, *, output_type: None = None, **options: Unpack[RunOptions]
    ) -> AsyncGenerator[StreamEvent[T], None]: ...

    @overload
    def stream(
        self, task: Task, *, output_type: type[U], **options: Unpack[RunOptions]
    ) -> AsyncGenerator[StreamEvent[U], None]: ...

    @overload
    def stream(
        self, task: Task, *, output_type: UnionType, **options: Unpack[RunOptions]
    ) -> AsyncGenerator[StreamEvent[Any], None]: ...

    def stream(
        self,
        task: Task,
        *,
        output_type: Any = None,
        tools: Sequence[AnyTool] | None = None,
        deps: object = None,
        variables: Mapping[str, object] | None = None,
        artifacts: Mapping[str, str] | None = None,
        history: Sequence[Message] | None = None,
        limits: RunLimits | None = None,
        max_steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        run_id: str | None = None,
        resume: bool = False,
        user: str | None = None,
        session: str | None = None,
        meta: Mapping[str, object] | None = None,
        **unknown: Never,
    ) -> AsyncGenerator[StreamEvent[Any], None]:
        """Do a task and yield its events as they happen; the last is `RunFinished`, with the `Result`.

        Takes the options of `run`.
        """
        request = _request(locals())
        return stream_events(lambda hook: self._runner.run(replace(request, hooks=(*(request.hooks or ()), hook))))

    async def start(
        self,
        task: Task,
        *,
        output_type: Any = None,
        tools: Sequence[AnyTool] | None = None,
        deps: object = None,
        variables: Mapping[str, object] | None = None,
        artifacts: Mapping[str, str] | None = None,
        history: Sequence[Message] | None = None,
        limits: RunLimits | None = None,
        max_steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        run_id: str | None = None,
        user: str | None = None,
        session: str | None = None,
        meta: Mapping[str, object] | None = None,
        **unknown: Never,
    ) -> Run:
        """Start a run to be done step by step: `await run.step()` until it returns a result. Then close the run.

        Takes the options of `run` but `resume`; artifacts are passed to the steps instead.
        """
        return await self._runner.start(_request(locals()))

    async def resume(
        self,
        run_id: str,
        answer: str | None = None,
        *,
        output_type: Any = None,
        tools: Sequence[AnyTool] | None = None,
        deps: object = None,
        limits: RunLimits | None = None,
        max_steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        user: str | None = None,
        on_change: OnChange = 'fail',
    ) -> Result[T]:
        """Resume a run that stopped at a limit, an error or a question, or whose process died, also in another process.

        Nothing that is in its record is asked, run or called again, and its variables are restored. A run that has its
        answer returns it again.

        Args:
            run_id: `Result.run_id`.
            answer: the answer to its question, or another message.
            output_type: the output type that the run was started with, if it had its own.
            tools: the tools that the run was started with, beside the agent's.
            deps: the dependencies again, which are not recorded.
            limits: limits for what follows; by default those of the agent, counted anew.
            max_steps: limit of steps for what follows.
            hooks: hooks for what follows, after the agent's.
            user: whose run it must be.
            on_change: what to do if the record no longer fits: `fail`, `continue` from there, or `fork`.
        """
        return await self._runner.resume(_resume_request(locals()))

    def resume_sync(
        self,
        run_id: str,
        answer: str | None = None,
        *,
        output_type: Any = None,
        tools: Sequence[AnyTool] | None = None,
        deps: object = None,
        limits: RunLimits | None = None,
        max_steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        user: str | None = None,
        on_change: OnChange = 'fail',
    ) -> Result[T]:
        """`resume` without `await`, with the same options."""
        return wait_here(self._runner.resume(_resume_request(locals())))

    async def answer(self, run_id: str, answer: Json, *, path: str | None = None, user: str | None = None) -> None:
        """Answer what a run waits for (`Result.waiting`); then `resume` it.

        Args:
            run_id: the run.
            answer: True or False for approvals; `{'again': True}` or `{'value': …}` for a step that may have been done.
            path: which question, if there are several.
            user: whose run it must be.
        """
        await self._runner.answer(run_id, answer, path=path, user=user)

    # Closing ----------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the sandboxes of unfinished runs, and the models that the agent has loaded."""
        await self._runner.close()


_AGENT_OPTIONS = tuple(name for name in signature(Agent).parameters if name not in ('self', 'unknown'))


def _request(arguments: Mapping[str, Any]) -> RunRequest:
    """The arguments of a method that starts a run, checked."""
    check_names('a run', arguments['unknown'], RUN_OPTIONS, {'Agent(…)': _AGENT_OPTIONS})
    options = {name: value for name, value in arguments.items() if name not in ('self', 'task', 'unknown')}
    task, files, memory = split_task(arguments['task'])
    return RunRequest(task=task, files=files, memory=memory, **options)


def _resume_request(arguments: Mapping[str, Any]) -> ResumeRequest:
    return ResumeRequest(**{name: value for name, value in arguments.items() if name != 'self'})
