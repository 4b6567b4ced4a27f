"""Agents and flows as tools of MCP clients, with progress; cancelling the call stops the run, which can be resumed."""

import asyncio
import inspect

from habilis.agent.agent import Agent
from habilis.agent.agent_tools import AgentTool, answer_of
from habilis.agent.events import AgentEvent
from habilis.agent.run_spec import run_spec
from habilis.flows.definitions import Flow
from habilis.flows.step_progress import steps_said
from habilis.flows.workflow import Workflow
from habilis.server.mcp.calls import McpAnswer, McpCall, McpTool, answer_of_value

App = Agent[object] | Flow[..., object] | Workflow
"""What becomes a tool of its own."""

_PROGRESS = {'step_started': 'thinks', 'code': 'runs code', 'answer_refused': 'corrects its answer'}
"""Events of a run that are reported, and what the agent does then."""


def app_tool(app: App) -> McpTool:
    """The tool for an agent or a flow. Raises `TypeError` for something else."""
    if isinstance(app, Agent):
        return _agent_tool(app)
    flow = app.flow if isinstance(app, Workflow) else app
    if not isinstance(flow, Flow):  # pyright: ignore[reportUnnecessaryIsInstance] - from a program of the user
        msg = f'{app!r} cannot be served: it is neither an Agent nor a Flow or a Workflow'
        raise TypeError(msg)
    return _flow_tool(flow)


def _agent_tool(agent: Agent[object]) -> McpTool:
    made = agent.as_tool()
    assert isinstance(made, AgentTool)

    async def answer(call: McpCall, arguments: inspect.BoundArguments) -> McpAnswer:
        def follow(event: AgentEvent) -> None:
            if event.kind in _PROGRESS:
                call.say(f'step {event.step}: {event.agent} {_PROGRESS[event.kind]}')

        given = arguments.arguments
        spec = run_spec(str(given['task']), {'variables': given.get('variables'), 'hooks': [follow]})
        return answer_of_value(await answer_of(made.runner, spec, made.name))

    return McpTool(tool=made, answer=answer, is_open=True)


def _flow_tool(flow: Flow[..., object]) -> McpTool:
    async def answer(call: McpCall, arguments: inspect.BoundArguments) -> McpAnswer:
        run = await flow.start(*arguments.args, **arguments.kwargs)
        try:
            async with steps_said(None, run.id, call.say):
                return answer_of_value(await run.result())
        except asyncio.CancelledError:
            await run.cancel()
            raise

    return McpTool(tool=flow.as_tool(), answer=answer, is_open=True)
