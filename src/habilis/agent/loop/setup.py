"""Puts a run together: sandbox, tools, prompt, conversation, policy."""

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from habilis.agent.context.conversation import Conversation
from habilis.agent.context.observation import describe_variable
from habilis.agent.context.output import OutputType
from habilis.agent.context.prompt import PromptParts, packages_rule, preview, system_prompt, task_message
from habilis.agent.contract import Result, RunLimits
from habilis.agent.durable.recorder import Recorder
from habilis.agent.durable.runs import Inputs
from habilis.agent.events import RunResumed, RunStarted
from habilis.agent.hooks.dispatch import Dispatcher, Hook
from habilis.agent.loop.agreement import TEMPERATURE, Comparison, Solution, StartState
from habilis.agent.loop.code_turn import CodeRunner
from habilis.agent.loop.components import Components, parent_ledgers
from habilis.agent.loop.final_answer import FinalAnswer
from habilis.agent.loop.limits import Meter
from habilis.agent.loop.model_turn import ModelTurn
from habilis.agent.loop.recalled_calls import CallResults, RecalledCalls
from habilis.agent.loop.run import Run
from habilis.agent.loop.sandboxes import Sandboxes, open_sandboxes
from habilis.agent.loop.tool_calls import ToolCaller
from habilis.agent.loop.variables import check_variables
from habilis.agent.options import AgentSetup
from habilis.agent.policies import History, load_policy
from habilis.core.errors import AgentError
from habilis.models.contract import Message, Model
from habilis.models.usage import Ledger
from habilis.sandbox import Sandbox
from habilis.sandbox.contract import Variable
from habilis.tools import Toolbox
from habilis.tools.contract import CallJournal

LoadModel = Callable[[], Model]


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """What one run is started with, beside the setup of its agent."""

    run_id: str
    task: str
    model: Model
    output_type: Any
    limits: RunLimits
    ledger: Ledger
    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    artifacts: Mapping[str, str] = field(default_factory=dict[str, str])
    history: Sequence[Message] = ()
    hooks: Sequence[Hook] = ()
    recorder: Recorder | None = None
    calls: CallJournal | None = None
    """Answers tool calls instead of the recorder."""

    temperature: float | None = None
    """Temperature of all requests."""

    load_larger: LoadModel | None = None
    """Loads the model to escalate to."""


@dataclass(frozen=True, kw_only=True)
class StartedRun:
    """A run and everything that is closed with it."""

    run: Run
    sandboxes: Sandboxes | None
    events: Dispatcher
    start_state: StartState | None = None
    recorder: Recorder | None = None
    system: str = ''
    first_message: str = ''
    artifacts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Documents for the first step."""

    async def close(self) -> None:
        """Free what was made for the run."""
        if self.sandboxes is not None:
            await self.sandboxes.close()
        if self.start_state is not None:
            await self.start_state.close()
        await self.events.close()
        if self.recorder is not None:
            await self.recorder.close()


async def start_run(setup: AgentSetup, inputs: RunInputs) -> StartedRun:
    """Open the sandbox, build the prompt, and be ready for the first step."""
    if inputs.variables and not setup.python:
        msg = 'variables are for code, and this agent writes none (python=False): put what they say into the task'
        raise AgentError(msg)
    sandboxes = await open_sandboxes(setup.sandbox, setup.sandbox_settings) if setup.python else None
    try:
        started = await _build(setup, inputs, sandboxes)
    except BaseException:
        if sandboxes is not None:
            await sandboxes.close()
        raise
    recorder = inputs.recorder
    for reply in await recorder.used_inside() if recorder is not None else ():
        inputs.ledger.record(reply.model, reply.usage, earlier=True)
    is_resumed = recorder is not None and (recorder.resumes or recorder.is_replaying)
    started.events.emit((RunResumed if is_resumed else RunStarted)(task=inputs.task, model=inputs.model))
    return started


async def _build(setup: AgentSetup, inputs: RunInputs, sandboxes: Sandboxes | None) -> StartedRun:
    events = Dispatcher(inputs.hooks, run=inputs.run_id, agent=setup.name)
    model, recorder, meter = inputs.model, inputs.recorder, Meter(inputs.limits)
    results = CallResults(recorder, recorder.scope if recorder else None) if setup.agree > 1 else None
    toolbox = Toolbox(
        [*setup.tools, *(sandboxes.tools(setup.observations) if sandboxes else ())],
        gates=(meter.gate, *setup.gates),
        emit=events.emit if events.has_hooks else None,
        approve=setup.approve,
        journal=inputs.calls or results or recorder,
        code=setup.python,
    )
    toolbox.bind(asyncio.get_running_loop())
    check_variables(inputs.variables, {function.name for function in toolbox.functions()})
    output, policy, history = OutputType(inputs.output_type), load_policy(setup.policy, model.traits), History()
    history.tools = toolbox.signatures()
    answer = FinalAnswer(output)
    caller = ToolCaller(toolbox, functions=model.traits.functions, python=setup.python, bounds=setup.observations)
    code = (
        None
        if sandboxes is None
        else CodeRunner(
            sandboxes,
            toolbox=toolbox,
            answer=answer,
            events=events,
            bounds=setup.observations,
            meter=meter,
            policy=policy,
            history=history,
            recorder=recorder,
        )
    )
    prompt = PromptParts(
        functions=model.traits.functions,
        python=setup.python,
        stubs=toolbox.stubs(),
        model_tools=caller.model_tools,
        output=output.name if inputs.output_type is not None else None,
        instructions=setup.instructions,
        packages=packages_rule(setup.sandbox_settings, files=sandboxes is not None and sandboxes.main.has_workspace),
    )
    variables = await code.begin(inputs.variables) if code else []
    conversation = Conversation(system_prompt(prompt), inputs.history)
    first_message = conversation.add_task(
        task_message(inputs.task, [_describe(variable, inputs.variables) for variable in variables]),
        note=policy.task_note(history.tools, can_stop=True) if setup.python else '',
        note_without_stop=policy.task_note(history.tools, can_stop=False) if setup.python else '',
    )
    start_state, comparison = None, None
    if results is not None:
        start_state = await _save_start(setup, sandboxes, recorder)
        comparison = _comparison(setup, inputs, results, start_state)
    around = parent_ledgers.get()
    run = Run(
        Components(
            run_id=inputs.run_id,
            conversation=conversation,
            system_without_stop=system_prompt(prompt.without_stop()),
            model=ModelTurn(model, conversation, events, (inputs.ledger, *around), recorder),
            code=code,
            tools=caller,
            toolbox=toolbox,
            answer=answer,
            output=output,
            policy=policy,
            history=history,
            meter=meter,
            ledger=inputs.ledger,
            parent_ledgers=around,
            events=events,
            recorder=recorder,
            summary=setup.summary,
            scripted=model.traits.scripted,
            variables=inputs.variables,
            temperature=inputs.temperature,
            comparison=comparison,
        )
    )
    return StartedRun(
        run=run,
        sandboxes=sandboxes,
        events=events,
        start_state=start_state,
        recorder=recorder,
        system=conversation.system,
        first_message=first_message,
        artifacts=inputs.artifacts,
    )


def _describe(variable: Variable, values: Mapping[str, object]) -> str:
    text = describe_variable(variable)
    return text if variable.text else f'{text}: {preview(values[variable.name])}'


# Further solutions ----------------------------------------------------------------------------------------------------


async def _save_start(setup: AgentSetup, sandboxes: Sandboxes | None, recorder: Recorder | None) -> StartState:
    backend = setup.sandbox if isinstance(setup.sandbox, str) else None
    is_resumed = recorder is not None and recorder.resumes
    return await StartState.save(sandboxes, backend, setup.sandbox_settings, is_resumed=is_resumed)


def _comparison(setup: AgentSetup, inputs: RunInputs, results: CallResults, start: StartState) -> Comparison:
    solve = functools.partial(_solve_again, setup, inputs, results, start)
    load_larger = inputs.load_larger

    async def escalate() -> Solution:
        assert load_larger is not None
        return await solve('escalated', model=await asyncio.to_thread(load_larger), temperature=None)

    return Comparison(
        setup.agree,
        lambda number: solve(f'solution-{number}'),
        ask=setup.on_disagreement == 'ask',
        escalate=escalate if load_larger is not None else None,
        larger=str(setup.escalate if isinstance(setup.escalate, str) else getattr(setup.escalate, 'name', '')),
    )


async def _solve_again(
    setup: AgentSetup,
    inputs: RunInputs,
    results: CallResults,
    start: StartState,
    name: str,
    *,
    model: Model | None = None,
    temperature: float | None = TEMPERATURE,
) -> Solution:
    """Solve the task from the same start, as a run nested in the first one."""
    if start.problem:
        return Solution(problem=start.problem)
    recorder = None
    if inputs.recorder is not None:
        recorder = Recorder(inputs.recorder.scope.below(name), top=False, task=inputs.task)
    calls = RecalledCalls(results, recorder)
    sandbox: Sandbox | None = await start.open(name)
    again = replace(
        setup,
        name=name,
        agree=1,
        summary=None,
        sandbox=setup.sandbox if sandbox is None else sandbox,
    )
    try:
        started = await start_run(
            again,
            replace(
                inputs,
                run_id=f'{inputs.run_id}/{name}',
                model=model or inputs.model,
                ledger=Ledger(name),
                hooks=(),
                recorder=recorder,
                calls=calls,
                temperature=temperature,
                load_larger=None,
            ),
        )
        try:
            return await _finish(started, calls, recorder, inputs)
        finally:
            await started.close()
    finally:
        if sandbox is not None:
            await sandbox.close()


async def _finish(started: StartedRun, calls: RecalledCalls, recorder: Recorder | None, inputs: RunInputs) -> Solution:
    if recorder is not None:
        opened = Inputs(task=inputs.task, model=inputs.model.name, variables=inputs.variables)
        await recorder.open(replace(opened, system=started.system, asked=started.first_message))
    result: Result[object] | None = None
    artifacts: Mapping[str, str] = inputs.artifacts
    while result is None and not calls.stopped:
        result = await started.run.step(artifacts=artifacts)
        artifacts = {}
    if calls.stopped or result is None:
        return Solution(problem=calls.stopped)
    if result.ended != 'answer':
        return Solution(problem=f'another solution ended with {result.ended}')
    return Solution(output=result.output)
