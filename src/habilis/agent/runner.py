"""The runs of one agent: start, resume, finish and close them."""

import asyncio
import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakSet

from habilis.agent.agent_tools import (
    AgentTool,
    Runs,
    check_checkpoints,
    check_cycles,
    check_deps,
    check_given_again,
    check_sandbox,
    check_skills,
    each_tool,
    name_of_deps,
    open_tools,
    resolve_tools,
    tools_and_helpers,
)
from habilis.agent.chat import Chat
from habilis.agent.context.instructions import evaluate, is_static
from habilis.agent.context.output import OutputType
from habilis.agent.context.truncation import Bounds
from habilis.agent.contract import Result, RunLimits
from habilis.agent.delegation import Delegation
from habilis.agent.durable.attached_files import attachments, data_of, to_records, with_data
from habilis.agent.durable.codecs import without_data
from habilis.agent.durable.recorder import Recorder
from habilis.agent.durable.results import RecordedResult
from habilis.agent.durable.runs import LoadedRun, NamedAgent, RunStore, nested_result
from habilis.agent.durable.sessions import SessionState
from habilis.agent.hooks.automatic import automatic_hooks
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.library import open_library
from habilis.agent.loop.replay import replay
from habilis.agent.loop.run import Run
from habilis.agent.loop.sandboxes import Sandboxes
from habilis.agent.loop.setup import check_inputs, check_task_files, start_run
from habilis.agent.loop.started_run import RunInputs, StartedRun
from habilis.agent.options import AgentSetup, AnyTool, check_types, names_of_tools
from habilis.agent.run_spec import RunSpec
from habilis.agent.sampling import sample_for_server
from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.core.errors import AgentError, RunBusy, RunNotFound
from habilis.journal import fingerprint, recording_scope
from habilis.journal.copies import new_run_id
from habilis.journal.questions import answer_run
from habilis.models.contract import Model
from habilis.models.loader import load_model
from habilis.models.usage import Ledger
from habilis.tools import Context, McpServer, Toolset


class Runner:
    """The runs of one agent, and its models, which are loaded when they are first needed."""

    def __init__(self, setup: AgentSetup, agent: NamedAgent) -> None:
        check_sandbox(setup, setup.tools)
        check_checkpoints(setup)
        self.setup = setup
        self._agent = agent
        self.ledger = Ledger()
        self._model: Model | None = setup.model if isinstance(setup.model, Model) else None
        self._larger: Model | None = setup.escalate if isinstance(setup.escalate, Model) else None
        self._open: dict[str, StartedRun] = {}
        self._runs = RunStore(setup.journal)
        self._library = None if setup.library is None else open_library(setup.library, setup.settings)
        self._delegation = Delegation(lambda setup: Runner(setup, setup)) if setup.helpers else None
        self._chats: WeakSet[Chat] = WeakSet()
        self._opened: set[Toolset] = set()  # closed with the agent
        self._is_closed = self._is_asked = False

    @property
    def model(self) -> Model:
        """The model. Loading it blocks."""
        if self._model is None:
            self._model = load_model(self.setup.model, settings=self.setup.settings, **self.setup.model_settings)
        return self._model

    def _load_larger(self) -> Model:
        if self._larger is None:
            self._larger = load_model(self.setup.escalate, settings=self.setup.settings)
        return self._larger

    def set_observations(self, bounds: Bounds) -> None:
        """Change how much the model is shown, in the runs under way too."""
        check_types('Agent', {'observations': bounds})
        self.setup = replace(self.setup, observations=bounds)
        for started in self._open.values():
            started.run.set_observations(bounds)

    def conversation(self, session: str | None, user: str | None) -> Chat:
        """A conversation whose turns are runs of this agent."""
        check_types('a conversation', {'session': session, 'user': user})
        self._check_open()
        user = user or self.setup.settings.user or ''
        chat = Chat(self, self._runs, session=session or '', user=user)
        self._chats.add(chat)
        return chat

    # Start ------------------------------------------------------------------------------------------------------------

    async def run(self, spec: RunSpec, chat: Chat | None = None) -> Result:
        """Do a task, as a turn of this conversation if there is one.

        Inside a flow or a tool of another run it is recorded as part of that.
        """
        scope = recording_scope()
        if scope is None:
            if spec.resume:
                return await self._resume_or_start(spec, chat)
            return await self._finish(await self.start(spec, chat), spec.artifacts, chat)
        said = [(message.role, message.text) for message in spec.history]
        digests = [file.digest for file in spec.attached]
        recalled = [spec.memory] if spec.memory else []
        key = fingerprint(spec.task, spec.variables, spec.artifacts, *said, *digests, *recalled)
        output, work = OutputType(self._output_type(spec)), functools.partial(self._run_nested, spec, chat)
        result = await nested_result(scope, self.setup.name, work, output, key=key, task=spec.task)
        earlier = chat.messages if chat is not None else spec.history
        return replace(result, messages=with_data(result.messages, data_of(spec.attached, earlier)))

    async def _run_nested(self, spec: RunSpec, chat: Chat | None) -> RecordedResult:
        scope = recording_scope()
        assert scope is not None
        recorder = Recorder(scope, top=False, task=spec.task)
        run = await self._begin(f'{scope.journal.run}/{scope.path}', spec, recorder, chat)
        return await recorder.recorded(await self._finish(run, spec.artifacts))

    async def _resume_or_start(self, spec: RunSpec, chat: Chat | None) -> Result:
        if not self._runs.is_off or spec.run_id in self._open:
            with contextlib.suppress(RunNotFound):
                return await self.resume(spec)
        return await self._finish(await self.start(spec, chat), spec.artifacts, chat)

    async def start(self, spec: RunSpec, chat: Chat | None = None) -> Run:
        """Start a run to be done step by step."""
        scope = recording_scope()
        if scope is None:
            return await self._begin(spec.run_id or new_run_id(), spec, None, chat)
        below = scope.below(self.setup.name)
        recorder = Recorder(below, top=False, task=spec.task)
        return await self._begin(f'{below.journal.run}/{below.path}', spec, recorder)

    async def _begin(self, run_id: str, spec: RunSpec, recorder: Recorder | None, chat: Chat | None = None) -> Run:
        self._check_open()
        check_inputs(self.setup, spec.variables)
        tools = await self._tools(spec)
        model = await self.loaded_model()
        check_task_files(self.setup, spec.attached, model)
        user = spec.user or self.setup.settings.user or ''
        start, sandboxes = await self._start_of(spec, chat, user, is_nested=recorder is not None)
        spec = replace(self._complete(spec, start, tools), run_id=run_id, model=model.name)
        if recorder is None:
            attached = {**start.snapshots, **attachments((*start.files, *spec.attached), start.messages)}
            recorder = await self._runs.create(
                run_id, self._agent, spec, user=user, session=spec.session, attached=attached
            )
        try:
            started = await self._open_run(spec, recorder, tools, start, sandboxes)
            if recorder is not None:
                await recorder.open(spec, started.prompt)
        except BaseException as error:
            if recorder is not None:
                await recorder.failed(error)
                await recorder.close()
            await self._close_run(run_id)
            raise
        return started.run

    def _complete(self, spec: RunSpec, start: SessionState, tools: Sequence[AnyTool]) -> RunSpec:
        """The spec as it is recorded, with what comes from the agent and from the conversation so far."""
        return replace(
            spec,
            output_type=self._output_type(spec),
            hooks=self._hooks(spec),
            history=without_data(start.messages),
            files=(*to_records(start.files, is_earlier=True), *to_records(spec.attached, is_earlier=False)),
            names=start.names,
            approved=tuple(start.grants.lasting),
            limits=spec.limits_or(self.setup.limits),
            own_tools=names_of_tools(spec.tools),
            library=self._find_tools(spec, tools),
            skills={skill.name: skill.digest for skill in self.setup.skills},
            own_output='' if spec.output_type is None else OutputType(spec.output_type).name,
            deps_name=name_of_deps(spec.deps),
        )

    async def _start_of(
        self, spec: RunSpec, chat: Chat | None, user: str, *, is_nested: bool
    ) -> tuple[SessionState, Sandboxes | None]:
        """Where the conversation of a run is, and the sandboxes it has already."""
        start, sandboxes = SessionState(messages=spec.history, names=None), None
        if chat is not None:
            start, sandboxes = await chat.start_turn()
        elif not spec.history:
            start = await self._runs.session_state(user, '' if is_nested else spec.session)
        return start, sandboxes if spec.own_sandbox is None else Sandboxes(main=spec.own_sandbox)

    async def _open_run(
        self,
        spec: RunSpec,
        recorder: Recorder | None,
        tools: Sequence[AnyTool],
        start: SessionState,
        sandboxes: Sandboxes | None = None,
    ) -> StartedRun:
        found, helpers = await self._library_tools(spec)
        if self._delegation is not None:
            helpers.append(self._delegation.tool(self.setup, await self.loaded_model(), tools, spec.hooks))
        started = await start_run(
            replace(
                self.setup,
                tools=(*tools, *found, *helpers),
                skills=[skill for skill in self.setup.skills if skill.name in spec.skills],
            ),
            RunInputs(
                spec=spec,
                model=await self.loaded_model(),
                instructions=await self._instructions(Context(spec.deps, run_id=spec.run_id), recorder),
                ledger=self.ledger.child(self.setup.name),
                start=start,
                sandboxes=sandboxes,
                library=self._library,
                found_tools=frozenset(tool.name for tool in each_tool(found)),
                helpers=frozenset(tool.name for tool in each_tool(helpers)),
                recorder=recorder,
                load_larger=self._load_larger if self.setup.escalate is not None else None,
            ),
        )
        started.run.on_close = functools.partial(self._close_started, started)
        self._open[spec.run_id] = started
        return started

    async def _tools(self, spec: RunSpec) -> Sequence[AnyTool]:
        """The tools of a run, checked with its dependencies. Those of servers are fetched."""
        check_cycles(self, spec.tools)
        tools = resolve_tools((*self.setup.tools, *spec.tools))
        check_deps(self.setup, (*tools, *tools_and_helpers(self.setup)), spec.deps)
        check_sandbox(self.setup, tools)
        check_skills(self.setup, tools)
        for server in tools:
            if isinstance(server, McpServer):
                server.offer_model(functools.partial(sample_for_server, self.loaded_model))
        return await open_tools(tools, self._opened)

    def _find_tools(self, spec: RunSpec, tools: Sequence[AnyTool]) -> tuple[str, ...]:
        """The names of the tools of the library that fit the task."""
        if self._library is None:
            return ()
        taken = {tool.name for tool in each_tool(tools)}
        return tuple(self._library.find(spec.task, taken | spec.variables.keys()))

    async def _library_tools(self, spec: RunSpec) -> tuple[list[AnyTool], list[AnyTool]]:
        """Those tools, and the ones to find and build more."""
        if self._library is None:
            return [], []
        found = [tool for name in spec.library if (tool := self._library.tool(name)) is not None]
        return [*found], [*self._library.helpers(await self.loaded_model())]

    async def _instructions(self, context: Context[object], recorder: Recorder | None) -> str:
        """The instructions of a run. Functions among them are called once: a resumed run has them in its record."""
        work = functools.partial(evaluate, self.setup.instructions, context)
        if recorder is None or is_static(self.setup.instructions):
            return await work()
        return await recorder.instructions(work)

    def _output_type(self, spec: RunSpec) -> Any:
        return self.setup.output_type if spec.output_type is None else spec.output_type

    def _hooks(self, spec: RunSpec) -> Sequence[Hook]:
        return (*self.setup.hooks, *spec.hooks) or tuple(automatic_hooks(self.setup.settings))

    async def loaded_model(self) -> Model:
        """The model, with its traits."""
        if not self._is_asked:  # a server may be asked for the traits of its model, which blocks
            await asyncio.to_thread(lambda: self.model.traits)
            self._is_asked = True
        return self.model

    # Resume -----------------------------------------------------------------------------------------------------------

    async def resume(self, spec: RunSpec) -> Result:
        """Resume a run that is open here, or load it from the journal."""
        self._check_open()
        run_id, answer, limits = spec.run_id, spec.answer, spec.limits_or(self.setup.limits)
        started = await self._continuable(run_id, spec.user)
        if started is not None:
            if spec.deps is not None:
                await self._tools(spec)
                started.run.toolbox.context = Context(spec.deps, run_id=run_id)
            return await self._resume_open(started, answer, limits)
        if self._runs.is_off:
            msg = f'this agent has no unfinished run {run_id!r}'
            raise AgentError(msg)
        loaded = await self._runs.load(run_id, user=self._user(spec.user), on_change=spec.on_change)
        try:
            _check_task(loaded, spec)
            if loaded.done is not None:
                return await loaded.result(OutputType(self._output_type(spec)))
            _check_answer(loaded.stopped, answer)
            check_given_again(loaded.inputs, spec, self.setup.skills)
            tools = await self._tools(spec)
            is_same = loaded.stopped in {None, 'approval'} and not spec.has_limits
            again = replace(spec, output_type=self._output_type(spec), hooks=self._hooks(spec))
            again = again.with_recorded(loaded.inputs, loaded.files)
            started = await self._open_run(again, loaded.recorder, tools, loaded.start)
            if not loaded.prompted:  # the process died while it started
                await loaded.recorder.open(loaded.inputs, started.prompt)
            result = await replay(started.run, loaded, answer=answer, limits=None if is_same else limits)
        except BaseException:
            await self._close_run(run_id)
            await loaded.recorder.close()
            raise
        if result is not None:
            await self._close_run(run_id)
            return result
        return await self._finish(started.run, {} if started.run.steps else loaded.inputs.artifacts)

    async def _resume_open(self, started: StartedRun, answer: str | None, limits: RunLimits) -> Result:
        """Resume a run of this process that is still open."""
        run = started.run
        if run.is_busy:
            msg = f'{run.id} is already running in this agent; wait until it has ended'
            raise RunBusy(msg)
        if run.result is not None and run.result.ended == 'answer' and answer is None:
            await self._close_run(run.id)
            return run.result
        _check_answer(run.result.ended if run.result is not None else None, answer)
        run.extend(limits)
        if answer is not None:
            run.tell(answer)
        return await self._finish(run, {} if run.steps else started.spec.artifacts)

    async def answer(
        self, run_id: str, answer: Json | Approval, *, path: str | None = None, user: str | None = None
    ) -> None:
        """Answer what a run waits for (`Result.waiting`); then `resume` it.

        Args:
            run_id: the run.
            answer: True, False or an `Approval` for an approval; for a step that may have been done `{'again': True}`
                to do it now, or `{'value': …}` with its result.
            path: which question, if there are several.
            user: whose run it must be.
        """
        await self._continuable(run_id, user)
        recorded = answer.to_json() if isinstance(answer, Approval) else answer
        await answer_run(self._runs.store, run_id, recorded, path=path, user=self._user(user))

    def _user(self, user: str | None) -> str | None:
        """The user whose runs may be touched; None for anybody's, where no user is configured."""
        return user if user is not None else self.setup.settings.user or None

    async def _continuable(self, run_id: str, user: str | None) -> StartedRun | None:
        """The run, if it is open here. An interrupted one is closed: what was done of its last step is recorded."""
        started = self._open.get(run_id)
        if started is None or not started.check_user(self._user(user)).run.is_interrupted:
            return started
        return await self._close_run(run_id)

    async def _finish(self, run: Run, artifacts: Mapping[str, str], chat: Chat | None = None) -> Result:
        is_over = run.is_recorded or chat is not None  # the sandbox of a chat is that of its next turn
        result: Result[object] | None = None
        try:
            while result is None:
                result = await run.step(artifacts=artifacts)
                artifacts = {}
        except Exception:
            if is_over:
                await self._close_run(run.id)
            raise
        except BaseException:
            await self._close_run(run.id)
            raise
        if self._library is not None and (started := self._open.get(run.id)) is not None:
            calls = [call for step in result.steps for call in step.calls]
            self._library.finished(started.spec.task, calls, ok=result.ended == 'answer', run_id=run.id)
        if result.ended == 'answer' or is_over:
            await self._close_run(run.id)
        return result

    def stop(self, run_id: str) -> bool:
        """Stop a run that is under way here, or one of its subagents. False if there is none of that id."""
        if (started := self._open.get(run_id)) is not None:
            started.run.stop()
            return True
        return any(runner.stop(run_id) for runner in self._inner_runners())

    def _inner_runners(self) -> Iterator[Runs]:
        if self._delegation is not None:
            yield from self._delegation.runners.values()
        for tool in each_tool(tools_and_helpers(self.setup)):
            if isinstance(tool, AgentTool):
                yield tool.runner

    async def forget(self, run_id: str) -> None:
        """Close a run that will not be resumed."""
        await self._close_run(run_id)

    async def _close_run(self, run_id: str) -> None:
        started = self._open.pop(run_id, None)
        if started is not None:
            started.run.on_close = None  # it refers to the run: only the garbage collector would free them
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
        for chat in list(self._chats):
            await chat.close()
        runners = self._delegation.runners.values() if self._delegation is not None else ()
        for one in (*runners, *self._opened):
            await one.close()
        await self._runs.close()
        for model, choice in ((self._model, self.setup.model), (self._larger, self.setup.escalate)):
            if model is not None and model is not choice:
                await model.close()


def _check_answer(ended: str | None, answer: str | None) -> None:
    if ended == 'question' and answer is None:
        msg = 'the run ended with a question: pass the answer'
        raise AgentError(msg)


def _check_task(loaded: LoadedRun, spec: RunSpec) -> None:
    """Refuse to resume a run that is asked for with another task than it was started with."""
    if spec.task and spec.task != loaded.inputs.task:
        msg = f'run {spec.run_id!r} was started with another task: {loaded.inputs.task!r}; choose another run_id'
        raise AgentError(msg)
