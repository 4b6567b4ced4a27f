"""The agent of a map without `--app`: made in each worker, of the options that are recorded with each run."""

from habilis.agent.agent import Agent
from habilis.cli.model_choice import ModelRequest, choose_model
from habilis.cli.program import AnyTool, load_tools
from habilis.cli.run.agent_options import choose_sandbox, make_agent
from habilis.cli.run.mcp_servers import servers_of
from habilis.cli.run.request import META_KEY, OUTPUT_TYPES, CommandRequest
from habilis.cli.terminal_user import TerminalUser
from habilis.core.errors import JournalError
from habilis.models.scripted import script_of

FROM_OPTIONS = f'{__name__}:from_options'


async def from_options(options: object) -> Agent:
    """The agent that the options of the command describe, as `CommandRequest.to_meta` has recorded them."""
    request = CommandRequest.from_meta({META_KEY: options})
    if request is None:
        msg = 'the run has no options of a command: start it with habilis map'
        raise JournalError(msg)
    settings = request.load_settings()
    wanted = ModelRequest(name=request.model, overrides=request.overrides)
    model = await choose_model(wanted, settings, TerminalUser(), _say_nothing)
    if (script := script_of(model)) is not None:
        script.reply_by_turn()
    tools: list[AnyTool] = [*servers_of(request, None)]
    if request.tools is not None:
        tools += load_tools(request.tools.names, folder=request.tools.folder)
    return make_agent(
        request,
        await choose_sandbox(request, settings, _say_nothing),
        model,
        tools=tools,
        hooks=(),
        approve=None,  # without a user, the run waits
        say=_say_nothing,
        output_type=OUTPUT_TYPES.get(request.output_type or ''),
    )


def _say_nothing(_: str) -> None:
    """The command has said it once for all workers."""
