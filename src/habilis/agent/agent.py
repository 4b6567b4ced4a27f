"""`Agent`: give it a task, and it writes Python until the task is done."""

from collections.abc import AsyncGenerator, Coroutine, Mapping
from dataclasses import replace
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, cast, overload

from typing_extensions import TypeVar, Unpack

from habilis.agent.chat import Chat
from habilis.agent.context.truncation import Bounds
from habilis.agent.contract import Result
from habilis.agent.decorators import Decorators
from habilis.agent.delegation import helpers_from
from habilis.agent.description import agent_html, agent_repr
from habilis.agent.durable.runs import JournalChoice, wait_here
from habilis.agent.events import StreamEvent
from habilis.agent.hooks.status import status_hooks
from habilis.agent.hooks.stream import stream_events
from habilis.agent.loop.run import Run
from habilis.agent.loop.sandboxes import open_sandbox
from habilis.agent.options import (
    AGENT_OPTIONS,
    AgentOptions,
    AgentSetup,
    ModelChoice,
    Task,
    bounds_from,
    check_model_settings,
    check_types,
    checked_library,
    checked_skills,
    limits_from,
    sandbox_settings_from,
    summary_prompt,
)
from habilis.agent.run_spec import (
    RUN_OPTIONS,
    ResumptionOptions,
    RunOptions,
    RunSpec,
    StartOptions,
    resume_spec,
    run_spec,
)
from habilis.agent.runner import Runner
from habilis.agent.signatures import with_options
from habilis.agent.wrong_guesses import check_names
from habilis.core.approval import Approval
from habilis.core.closing import Closing
from habilis.core.codec import Json
from habilis.core.settings import load_settings
from habilis.core.wrong_names import missing_attribute
from habilis.models.contract import Model
from habilis.models.usage import Ledger
from habilis.sandbox import Sandbox

T = TypeVar('T', default=Any)
U = TypeVar('U')


class Agent(Decorators, Closing, Generic[T]):
    """A model, its tools and its sandbox. One agent can do many runs, also at the same time."""

    @with_options(AgentOptions, AgentSetup)
    def __init__(
        self,
        model: ModelChoice | None = None,
        *,
        output_type: type[T] | UnionType | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        """Nothing is started or downloaded yet.

        Args:
            model: `provider:model`, an alias, or a `Model`; None: the configured one, else the first that is found.
            output_type: type of the answer: `int`, `list[str]`, `int | str`, a dataclass, a pydantic model.
            tools: functions the code may call, toolsets, and other agents.
            helpers: True to let code start subagents with `delegate`; or more kinds of them, by name.
            library: a tool library to find tools in and build new ones for: folder, `Library`, True for the settings'.
            skills: Agent Skills: folders with `SKILL.md`, or of such folders; zip files; own ones or packages by name.
            instructions: text for the system prompt, a function of nothing or the `Context` that returns it, or a list.
            limits: limits of a run.
            workspace: host folder for files, at `/workspace` inside; True for a temporary one.
            packages: pure-Python packages that the code may import, such as `attrs==25.3`.
            network: hosts that the code may reach, such as `['api.example.com']`; True for all public, default none.
            sandbox: a backend by name (a new sandbox for each run), a `Sandbox`, or several by name.
            sandbox_settings: more settings of `Sandbox.create`.
            hooks: called with every event; see `habilis.agent.hooks`.
            gates: see each tool call first; may deny or change it, or ask.
            checkpoints: store the files of the workspace after each step that changed some; needs git and a journal.
            settings: instead of those of the environment and `habilis.toml`.
            model_settings: `temperature`, `max_tokens`, `timeout`, `base_url`, `api_key` and more of the model.
            output_validators: functions of the answer, or of context and answer: return it, or raise `ModelRetry`.
            deps_type: type of the dependencies that `run(…, deps=…)` must be given, for tools with a `Context`.
            code_rules: rules for the code, such as `CodeRules(imports=('math',))`.
            python: False to let the model only call functions.
            talk: True if tasks are what a person says in a conversation: the model may answer in words alone.
            observations: how much of its output the model is shown.
            summary: `off`, `default`, or the prompt of a last request that summarizes the run.
            approve: asks a person about tool calls that need it.
            name: name of the agent in events, usage and records.
            policy: `general`, `small`, or a `habilis.agent.Policy`; None: by the model.
            agree: number of independent solutions to compare; 1 for no comparison. See `Result.agreement`.
            on_disagreement: `first` takes the first answer, `ask` ends the run with a question to a person.
            escalate: a larger model that the task is handed to on disagreement.
            journal: where runs are recorded: a file, folder, URL or `Store`, or `off`; None: as the settings say.
        """
        self._runner = Runner(_setup(model, output_type, options), self)

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
    def observations(self) -> Bounds:
        """How much of its output the model is shown. A change counts from the next step on."""
        return self._runner.setup.observations

    @observations.setter
    def observations(self, bounds: Bounds) -> None:
        self._runner.set_observations(bounds)

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
            raise missing_attribute('Agent', name, dir(type(self)), AGENT_OPTIONS)

        def __setattr__(self, name: str, value: object) -> None:
            if type(self) is Agent and not (name.startswith('_') or hasattr(Agent, name)):
                raise missing_attribute('Agent', name, dir(Agent), AGENT_OPTIONS)
            super().__setattr__(name, value)

        def __call__(self, *_: object, **__: object) -> None:
            msg = "an Agent is not called: use agent.run_sync('…') or await agent.run('…')"
            raise TypeError(msg)

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

    @with_options(RunOptions, RunSpec)
    async def run(self, task: Task = '', *, output_type: Any = None, **options: Unpack[RunOptions]) -> Result[Any]:
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
        return await self._runner.run(run_spec(task, {'output_type': output_type, **options}))

    @overload
    def run_sync(self, task: Task, *, output_type: None = None, **options: Unpack[RunOptions]) -> Result[T]: ...

    @overload
    def run_sync(self, task: Task, *, output_type: type[U], **options: Unpack[RunOptions]) -> Result[U]: ...

    @overload
    def run_sync(self, task: Task, *, output_type: UnionType, **options: Unpack[RunOptions]) -> Result[Any]: ...

    @with_options(RunOptions, RunSpec, like=run)
    def run_sync(self, task: Task = '', *, output_type: Any = None, **options: Unpack[RunOptions]) -> Result[Any]:
        """`run` without `await`; works inside a running event loop too (Jupyter)."""
        spec, setup = run_spec(task, {'output_type': output_type, **options}), self._runner.setup
        with status_hooks(setup.settings, setup.hooks, spec.hooks) as shown:
            return wait_here(self._runner.run(replace(spec, hooks=shown)))

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

    @with_options(RunOptions, RunSpec, like=run)
    def stream(
        self, task: Task = '', *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> AsyncGenerator[StreamEvent[Any], None]:
        """Do a task and yield its events as they happen; the last is `RunFinished`, with the `Result`."""
        spec = run_spec(task, {'output_type': output_type, **options})
        return stream_events(lambda hook: self._runner.run(replace(spec, hooks=(*spec.hooks, hook))))

    @with_options(StartOptions, RunSpec, like=run)
    async def start(self, task: Task, *, output_type: Any = None, **options: Unpack[StartOptions]) -> Run:
        """Start a run to be done step by step: `await run.step()` until it returns a result. Then close the run.

        Takes the options of `run` but `resume`; artifacts are passed to the steps instead.
        """
        return await self._runner.start(run_spec(task, {'output_type': output_type, **options}, StartOptions))

    @with_options(ResumptionOptions, RunSpec)
    async def resume(
        self, run_id: str, answer: str | None = None, *, output_type: Any = None, **options: Unpack[ResumptionOptions]
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
        return await self._runner.resume(resume_spec(run_id, answer, {'output_type': output_type, **options}))

    @with_options(ResumptionOptions, RunSpec, like=resume)
    def resume_sync(
        self, run_id: str, answer: str | None = None, *, output_type: Any = None, **options: Unpack[ResumptionOptions]
    ) -> Result[T]:
        """`resume` without `await`."""
        return wait_here(self._runner.resume(resume_spec(run_id, answer, {'output_type': output_type, **options})))

    def run_spec(self, spec: RunSpec) -> Coroutine[Any, Any, Result[Any]]:
        """Start or resume the run that a specification describes: what `run` and `resume` make of their options."""
        return self._runner.resume(spec) if spec.is_resumption else self._runner.run(spec)

    async def answer(
        self, run_id: str, answer: Json | Approval, *, path: str | None = None, user: str | None = None
    ) -> None:
        """Answer what a run waits for (`Result.waiting`); then `resume` it.

        Args:
            run_id: the run.
            answer: True, False or an `Approval` for approvals; `{'again': True}` or `{'value': …}` for a step that may
                have been done.
            path: which question, if there are several.
            user: whose run it must be.
        """
        await self._runner.answer(run_id, answer, path=path, user=user)

    # Parts of it ------------------------------------------------------------------------------------------------------

    def with_model(self, model: Model) -> 'Agent[T]':
        """The same agent with another model."""
        other: Agent[T] = object.__new__(Agent)
        other._runner = Runner(replace(self._runner.setup, model=model, model_settings={}), other)
        return other

    @property
    def journal(self) -> JournalChoice:
        """Where runs are recorded, as it was given."""
        return self._runner.setup.journal

    async def open_sandbox(self) -> Sandbox:
        """A sandbox as the runs of this agent get it, to prepare it and to fork it. Whoever opens it closes it."""
        setup = self._runner.setup
        return await open_sandbox(setup.sandbox, setup.sandbox_settings, setup.tools)

    # Closing ----------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the sandboxes of unfinished runs, and the models that the agent has loaded."""
        await self._runner.close()


_SEQUENCES = frozenset({'output_validators', 'tools', 'hooks', 'gates'})
_SANDBOX_OPTIONS = ('workspace', 'packages', 'network', 'code_rules')


def _setup(model: ModelChoice | None, output_type: Any, options: AgentOptions) -> AgentSetup:
    """The options of an agent, checked and complete. None counts as absent."""
    check_names('Agent', options, AGENT_OPTIONS, {'run(…)': {*RUN_OPTIONS} - {'max_steps'}})
    check_types('Agent', {'model': model, 'output_type': output_type, **options})
    check_model_settings(model, options.get('model_settings'))
    given: Mapping[str, Any] = {name: value for name, value in options.items() if value is not None}
    settings = given.get('settings') or load_settings()
    sandbox = given.get('sandbox', settings.sandbox)
    named = {name: given.get(name) for name in _SANDBOX_OPTIONS}
    complete: dict[str, Any] = {
        'helpers': helpers_from(given.get('helpers')),
        'library': checked_library(given.get('library'), python=given.get('python', True)),
        'skills': checked_skills(given.get('skills', ()), sandbox, python=given.get('python', True)),
        'limits': given.get('limits') or limits_from(settings),
        'sandbox': sandbox,
        'sandbox_settings': sandbox_settings_from(given.get('sandbox_settings', {}), named, sandbox, settings),
        'observations': given.get('observations') or bounds_from(settings),
        'summary': summary_prompt(given.get('summary', settings.summary)),
        'journal': given.get('journal') or settings.journal,
        'settings': settings,
    }
    same: dict[str, Any] = {
        name: tuple(value) if name in _SEQUENCES else value
        for name, value in given.items()
        if name not in _SANDBOX_OPTIONS
    }
    return AgentSetup(model=model, output_type=output_type, **{**same, **complete})
