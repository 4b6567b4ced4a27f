"""Puts a run together: sandbox, tools, prompt, conversation, policy."""

import asyncio
import functools
from collections.abc import Mapping, Sequence
from datetime import datetime

from habilis.agent.agent_tools import delegate_name, each_tool, needs_sandbox, resolve_tools
from habilis.agent.context.conversation import Conversation
from habilis.agent.context.observation import describe_variable
from habilis.agent.context.output import OutputType
from habilis.agent.context.prompt import PromptParts, packages_rule, preview, system_prompt, task_message
from habilis.agent.contract import RunLimits
from habilis.agent.durable.checkpoints import Checkpoints
from habilis.agent.durable.records import Prompt
from habilis.agent.events import FileAttached, RunResumed, RunStarted
from habilis.agent.hooks.dispatch import Dispatcher
from habilis.agent.loop.code_turn import CodeRunner
from habilis.agent.loop.components import Components, calling_run, parent_ledgers
from habilis.agent.loop.final_answer import FinalAnswer
from habilis.agent.loop.foundation import Foundation
from habilis.agent.loop.further_solutions import compare_with, save_start
from habilis.agent.loop.input_files import check_files, describe_file
from habilis.agent.loop.limits import Meter
from habilis.agent.loop.model_turn import ModelTurn
from habilis.agent.loop.offered_tools import OfferedTools, unlisted_tools
from habilis.agent.loop.output_validators import OutputValidators
from habilis.agent.loop.recalled_calls import CallResults, without_effects
from habilis.agent.loop.run import Run
from habilis.agent.loop.sandboxes import NOT_SHARED, WRITABLE, Sandboxes, check_read_only, open_sandboxes
from habilis.agent.loop.started_run import RunInputs, StartedRun
from habilis.agent.loop.tool_calls import ToolCaller
from habilis.agent.loop.variables import check_variables
from habilis.agent.options import AgentSetup, AnyTool
from habilis.agent.policies import History, Policy, load_policy
from habilis.agent.policies.imports import Declared
from habilis.core.errors import AgentError
from habilis.models.contract import Model, check_images
from habilis.models.files import File, Image
from habilis.sandbox.contract import Variable
from habilis.sandbox.files.workspace import WORKSPACE
from habilis.sandbox.host.results import pack_variables
from habilis.tools import Context, Toolbox, Toolset
from habilis.tools.catalog import SEARCH


def check_inputs(setup: AgentSetup, variables: Mapping[str, object]) -> None:
    """Raise `AgentError` or `SandboxError` for variables that no run can start with, before the run is created."""
    _check_python(setup, variables)
    check_variables(variables, ())
    pack_variables(variables)


def check_task_files(setup: AgentSetup, files: Sequence[File], model: Model) -> None:
    """Raise `AgentError` or `ModelRefused` for images that the model does not see, and files that nothing can read."""
    check_files(files, python=setup.python)
    check_images(model, [file for file in files if isinstance(file, Image)])


def _check_python(setup: AgentSetup, variables: Mapping[str, object]) -> None:
    if variables and not setup.python:
        msg = 'variables are for code, and this agent writes none (python=False): put what they say into the task'
        raise AgentError(msg)


async def start_run(setup: AgentSetup, inputs: RunInputs) -> StartedRun:
    """Open the sandbox, build the prompt, and be ready for the first step."""
    _check_python(setup, inputs.spec.variables)
    sandboxes = inputs.sandboxes
    runs_code = setup.python or bool(setup.helpers)  # that of subagents, in a sandbox like this one
    if sandboxes is None and (runs_code or setup.checkpoints or needs_sandbox(setup.tools)):
        has_files = bool(inputs.spec.attached or inputs.start.files)
        sandboxes = await open_sandboxes(setup.sandbox, setup.sandbox_settings, setup.tools, has_files, setup.skills)
    try:
        if sandboxes is not None and runs_code:
            check_read_only(sandboxes, setup.tools)
        placed = await _place(inputs, sandboxes)
        started = await _build(setup, inputs, sandboxes, placed)
    except BaseException:
        if sandboxes is not None:
            await sandboxes.close()
        raise
    recorder = inputs.recorder
    for reply in await recorder.used_inside() if recorder is not None else ():
        inputs.ledger.record(reply.model, reply.usage, earlier=True)
    is_resumed = recorder is not None and (recorder.resumes or recorder.is_replaying)
    started.events.report(RunResumed if is_resumed else RunStarted, task=inputs.spec.task, model=inputs.model)
    for file, path in placed if not is_resumed else ():
        started.events.report(FileAttached, name=file.name, bytes=len(file.data), path=path)
    return started


async def _build(
    setup: AgentSetup, inputs: RunInputs, sandboxes: Sandboxes | None, placed: Sequence[tuple[File, str]]
) -> StartedRun:
    """The run and its components. The order matters: the prompt describes the tools and the variables."""
    recorder = inputs.recorder
    results = CallResults(recorder, recorder.scope if recorder else None) if setup.agree > 1 else None
    base = _foundation(setup, inputs, sandboxes, results)
    tools = ToolCaller(
        base.toolbox, functions=inputs.model.traits.functions, python=setup.python, bounds=setup.observations
    )
    code = _code_runner(setup, base, sandboxes)
    declared = code.declared if code else Declared()
    prompt = functools.partial(_prompt, setup, inputs, sandboxes, base, tools, declared)
    variables = await code.begin(base.spec.variables, inputs.start) if code else []
    conversation = Conversation(system_prompt(prompt()), inputs.start.messages)
    situation = await _situation(inputs, base.policy, sandboxes if code else None)
    first_message = _add_task(conversation, setup, base, code, variables=variables, placed=placed, situation=situation)
    start_state = None if results is None else await save_start(setup, inputs, sandboxes)
    comparison = compare_with(start_run, setup, inputs, results, start_state) if results and start_state else None
    offered = OfferedTools(base, tools, conversation=conversation, prompt=prompt)
    components = Components(
        **vars(base),
        conversation=conversation,
        model=_model_turn(inputs, base, conversation, offered, code),
        code=code,
        tools=tools,
        offered=offered,
        validators=_validators(setup, base),
        parent_ledgers=parent_ledgers.get(),
        parent=calling_run.get(),
        summary=setup.summary,
        scripted=inputs.model.traits.scripted,
        temperature=inputs.temperature,
        checkpoints=_checkpoints(setup, inputs, sandboxes),
        comparison=comparison,
    )
    return StartedRun(
        run=Run(components),
        sandboxes=sandboxes,
        events=base.events,
        start_state=start_state,
        recorder=recorder,
        prompt=Prompt(
            system=conversation.system, asked=first_message, situation=situation, imports=declared.statements()
        ),
        spec=base.spec,
    )


def _foundation(
    setup: AgentSetup, inputs: RunInputs, sandboxes: Sandboxes | None, results: CallResults | None
) -> Foundation:
    spec, traits, parent = inputs.spec, inputs.model.traits, calling_run.get()
    events = Dispatcher(spec.hooks, run=spec.run_id, agent=setup.name, parent=parent.id if parent else '')
    meter = Meter(spec.limits or RunLimits(), local=traits.local and not traits.scripted, delegate=delegate_name(setup))
    toolbox = _toolbox(setup, inputs, sandboxes, meter=meter, events=events, results=results)
    history = History(
        tools=toolbox.signatures(),
        found_tools=inputs.found_tools,
        helpers=inputs.helpers if toolbox.more_toolsets() else inputs.helpers | {SEARCH},
        is_talk=setup.talk,
    )
    history.expects_code = _expects_code(setup, inputs, sandboxes, history)
    return Foundation(
        spec=spec,
        toolbox=toolbox,
        answer=FinalAnswer(OutputType(spec.output_type), toolbox.close),
        policy=load_policy(setup.policy, traits),
        history=history,
        meter=meter,
        ledger=inputs.ledger,
        events=events,
        recorder=inputs.recorder,
    )


def _validators(setup: AgentSetup, base: Foundation) -> OutputValidators:
    return OutputValidators(
        setup.output_validators,
        output=base.answer.output,
        toolbox=base.toolbox,
        events=base.events,
        recorder=base.recorder,
    )


def _code_runner(setup: AgentSetup, base: Foundation, sandboxes: Sandboxes | None) -> CodeRunner | None:
    """Runs code that finds nothing imported that would hide a variable of the user or a tool."""
    if sandboxes is None or not setup.python:
        return None
    taken = {*base.spec.variables, *(function.name for function in base.toolbox.functions())}
    rules = sandboxes.main.code_rules
    declared = Declared.permitted(base.policy.imports(), rules, taken=taken, scripts=bool(setup.skills))
    return CodeRunner(sandboxes, base, bounds=setup.observations, declared=declared)


def _model_turn(
    inputs: RunInputs, base: Foundation, conversation: Conversation, offered: OfferedTools, code: CodeRunner | None
) -> ModelTurn:
    meter, parent = base.meter, calling_run.get()
    return ModelTurn(
        inputs.model,
        conversation,
        base,
        ledgers=parent_ledgers.get(),
        use_text=offered.use_text,
        variables=(lambda: code.variables) if code is not None else tuple,
        has_reached=lambda usage: meter.limit_reached(0, usage) or (parent.limit_reached() if parent else None),
    )


def _add_task(
    conversation: Conversation,
    setup: AgentSetup,
    base: Foundation,
    code: CodeRunner | None,
    *,
    variables: Sequence[Variable],
    placed: Sequence[tuple[File, str]],
    situation: str,
) -> str:
    """Tell the model the task, with the variables and files that it is about."""
    spec, policy, history = base.spec, base.policy, base.history
    described = [_describe(variable, spec.variables) for variable in variables]
    files = [describe_file(file, path) for file, path in placed]
    return conversation.add_task(
        task_message(spec.task, described, gone=code.gone if code else (), files=files),
        tuple(file for file in spec.attached if isinstance(file, Image)),
        memory=spec.memory,
        situation=situation,
        note=policy.task_note(history, can_stop=True) if setup.python else '',
        note_without_stop=policy.task_note(history, can_stop=False) if setup.python else '',
    )


def _checkpoints(setup: AgentSetup, inputs: RunInputs, sandboxes: Sandboxes | None) -> Checkpoints | None:
    if not setup.checkpoints or inputs.recorder is None or sandboxes is None:
        return None
    return Checkpoints(sandboxes.main.workspace, inputs.recorder, inputs.spec.task)


def _toolbox(
    setup: AgentSetup,
    inputs: RunInputs,
    sandboxes: Sandboxes | None,
    *,
    meter: Meter,
    events: Dispatcher,
    results: CallResults | None,
) -> Toolbox:
    toolbox = Toolbox(
        [*_usable_tools(setup, sandboxes), *(sandboxes.tools(setup.observations) if sandboxes else ())],
        gates=(meter.gate, *setup.gates),
        emit=events.emit if events.has_hooks else None,
        approve=meter.uncounted(setup.approve),
        journal=inputs.calls or without_effects(results or inputs.recorder),
        code=setup.python,
        context=Context(inputs.spec.deps, run_id=inputs.spec.run_id),
        sandbox=sandboxes.main if sandboxes else None,
        grants=inputs.start.grants,
        unlisted=unlisted_tools(
            resolve_tools(setup.tools),
            setup.settings.tool_tokens,
            python=setup.python,
            kept=inputs.found_tools | inputs.helpers,
        ),
        library=inputs.library,
    )
    if inputs.recorder is not None:
        inputs.recorder.grants = inputs.start.grants
    toolbox.bind(asyncio.get_running_loop())
    check_variables(inputs.spec.variables, {function.name for function in toolbox.functions()})
    return toolbox


def _usable_tools(setup: AgentSetup, sandboxes: Sandboxes | None) -> Sequence[AnyTool]:
    """The tools of the agent, without those that would change a workspace that is read-only."""
    main = sandboxes.main if sandboxes else None
    if main is None or not (main.has_workspace and main.workspace.read_only):
        return setup.tools
    return [one.reading() if isinstance(one, Toolset) and one.needs_workspace else one for one in setup.tools]


def _prompt(
    setup: AgentSetup,
    inputs: RunInputs,
    sandboxes: Sandboxes | None,
    base: Foundation,
    tools: ToolCaller,
    declared: Declared,
) -> PromptParts:
    given = bool(inputs.spec.attached or inputs.start.files or setup.skills)
    has_files = sandboxes is not None and (sandboxes.main.has_workspace or given)
    return PromptParts(
        functions=tools.are_functions,
        python=setup.python,
        stubs=base.toolbox.stubs(),
        model_tools=tools.model_tools,
        skills={skill.name: skill.description for skill in setup.skills},
        has_script_runner=bool(declared.definitions),
        more_toolsets=base.toolbox.more_toolsets(),
        output=OutputType(inputs.spec.output_type).name if inputs.spec.output_type is not None else None,
        instructions=inputs.instructions,
        packages=packages_rule(setup.sandbox_settings, files=has_files),
        imports=tuple(declared.imports),
        talk=setup.talk,
        text=base.policy.text,
    )


async def _situation(inputs: RunInputs, policy: Policy, sandboxes: Sandboxes | None) -> str:
    """The date and the workspace: as the record of the run has them, else as they are now if the model knows others."""
    recorded = None if inputs.recorder is None else await inputs.recorder.situation()
    if recorded is not None:
        return recorded
    today = policy.text('today').replace('{date}', datetime.now().astimezone().date().isoformat())
    told = next((message.situation for message in reversed(inputs.start.messages) if message.situation), '')
    files = sandboxes.describe_files() if sandboxes else ''
    rights = sandboxes.describe_rights() if sandboxes else ''
    if not files and WORKSPACE in told:
        rights = NOT_SHARED
    now = ' '.join(filter(None, (today, files, rights)))
    with_right = now if rights or not files else f'{now} {WRITABLE}'
    if told in (now, with_right):
        return ''
    return with_right if told else now  # that code may write goes without saying, unless it was told otherwise


def _expects_code(setup: AgentSetup, inputs: RunInputs, sandboxes: Sandboxes | None, history: History) -> bool:
    """Whether code has something to work on, and this is no turn of a conversation. The model sees images itself."""
    spec = inputs.spec
    if not setup.python or setup.talk or spec.session or inputs.start.messages:
        return False
    has_files = any(not isinstance(file, Image) for file in spec.attached)
    has_workspace = sandboxes is not None and sandboxes.main.has_workspace
    talking = [one for one in setup.tools if isinstance(one, Toolset) and not one.for_subagents]
    has_tools = bool({*history.own_tools} - {tool.name for tool in each_tool(talking)})
    return bool(spec.variables) or has_files or has_workspace or has_tools


async def _place(inputs: RunInputs, sandboxes: Sandboxes | None) -> list[tuple[File, str]]:
    """Put the files of the conversation into the sandbox. Returns those of this task, with their paths inside."""
    if sandboxes is None:
        return []
    for file in inputs.start.files:
        await sandboxes.add_file(file)
    placed = [(file, await sandboxes.add_file(file)) for file in inputs.spec.attached]
    return [(file, path) for file, path in placed if path]


def _describe(variable: Variable, values: Mapping[str, object]) -> str:
    text = describe_variable(variable)
    return text if variable.text else f'{text}: {preview(variable.name, values[variable.name])}'
