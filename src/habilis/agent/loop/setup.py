"""Putting a run together: sandbox, tools, prompt and conversation."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from habilis.agent.loop.code_turn import Actor, StopTool, check_variables
from habilis.agent.loop.model_turn import Asker
from habilis.agent.loop.limits import Meter
from habilis.agent.loop.tool_calls import Caller
from habilis.agent.contract import RunLimits
from habilis.agent.context.conversation import Conversation
from habilis.agent.lifting import ROWS, TABLE, lifted_variables
from habilis.agent.context.observation import described
from habilis.agent.options import AgentSetup
from habilis.agent.context.output import OutputType
from habilis.agent.loop.components import Parts, above
from habilis.agent.context.prompt import PromptParts, packages_rule, preview, system_prompt, task_message
from habilis.agent.durable.recorder import Recorder
from habilis.agent.loop.sandboxes import Rooms, open_rooms
from habilis.agent.loop.run import Run
from habilis.agent.hooks.dispatch import Hook, Watchers
from habilis.core.errors import AgentError
from habilis.core.events import Event
from habilis.models.contract import Message, Model
from habilis.models.usage import Ledger
from habilis.tools import Toolbox


@dataclass(frozen=True, kw_only=True)
class Starting:
    """A run and what has to be closed with it."""

    run: Run
    rooms: Rooms | None
    watchers: Watchers
    recorder: Recorder | None = None
    system: str = ''
    asked: str = ''
    """The first message."""

    artifacts: Mapping[str, str] = field(default_factory=dict[str, str])
    """For the first step."""

    async def close(self) -> None:
        """Free what was made for the run."""
        if self.rooms is not None:
            await self.rooms.close()
        await self.watchers.close()
        if self.recorder is not None:
            await self.recorder.close()


async def start_run(
    setup: AgentSetup,
    *,
    model: Model,
    output_type: Any,
    run_id: str,
    task: str,
    variables: Mapping[str, object],
    history: Sequence[Message],
    limits: RunLimits,
    hooks: Sequence[Hook],
    ledger: Ledger,
    recorder: Recorder | None = None,
) -> Starting:
    """Open the sandbox, put the prompt together, and be ready for the first step."""
    if variables and not setup.python:
        msg = 'variables are for code, and this agent writes none (python=False): put what they say into the task'
        raise AgentError(msg)
    watchers = Watchers(hooks, run=run_id, agent=setup.name)
    outer = above.get()
    rooms = await open_rooms(setup.sandbox, setup.sandbox_settings) if setup.python else None
    try:
        meter = Meter(limits)
        moving = rooms.tools(setup.observations) if rooms else ()
        toolbox = Toolbox(
            [*setup.tools, *moving],
            gates=(meter.gate, *setup.gates),
            emit=watchers.emit,
            approve=setup.approve,
            journal=recorder,
            code=setup.python,
        )
        toolbox.bind(asyncio.get_running_loop())
        taken = {function.name for function in toolbox.functions()}
        check_variables(variables, taken)
        output = OutputType(output_type)
        functions = model.traits.functions
        caller = Caller(toolbox, functions=functions, python=setup.python, bounds=setup.observations)
        stop = StopTool(output)
        actor = (
            Actor(rooms, toolbox, stop, watchers, setup.observations, meter, small=not functions, recorder=recorder)
            if rooms
            else None
        )
        prompt = PromptParts(
            functions=functions,
            python=setup.python,
            stubs=toolbox.stubs(),
            model_tools=caller.model_tools,
            output=output.name if output_type is not None else None,
            instructions=setup.instructions,
            packages=packages_rule(setup.sandbox_settings, files=rooms is not None and rooms.main.has_workspace),
        )
        lifted = {} if functions else lifted_variables(task)
        shown = {**lifted, **variables} if taken.isdisjoint(lifted) else variables
        found = await actor.begin(shown) if actor else []
        listed = [
            described(variable)
            if variable.text
            else f'{described(variable)}: {preview(variable.name, shown[variable.name])}'
            for variable in found
            if not (variable.name == TABLE and ROWS in lifted and TABLE not in variables)  # its rows are all it takes
        ]
        conversation = Conversation(system_prompt(prompt), history)
        remind = setup.python and not functions
        text = task_message(task, variables=listed, tools=toolbox.signatures(), remind=remind)
        conversation.add(Message(role='user', text=text), by_user=True)
    except BaseException:
        if rooms is not None:
            await rooms.close()
        raise
    run = Run(
        Parts(
            run_id=run_id,
            task=task,
            conversation=conversation,
            system_without_stop=system_prompt(prompt.without_stop()),
            asker=Asker(model, conversation, watchers, (ledger, *outer), recorder),
            actor=actor,
            caller=caller,
            toolbox=toolbox,
            stop=stop,
            output=output,
            meter=meter,
            ledger=ledger,
            outer=outer,
            watchers=watchers,
            recorder=recorder,
            summary=setup.summary,
            scripted=model.traits.scripted,
            variables=variables,
        )
    )
    for reply in await recorder.used_inside() if recorder is not None else ():
        ledger.record(reply.model, reply.usage, earlier=True)
    kind = 'run_resumed' if recorder is not None and (recorder.resumes or recorder.replaying) else 'run_started'
    watchers.emit(Event(kind=kind, text=task, data=model))
    return Starting(run=run, rooms=rooms, watchers=watchers, recorder=recorder, system=conversation.system, asked=text)
