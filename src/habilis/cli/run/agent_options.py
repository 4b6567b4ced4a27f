"""The agent that a request asks for, for `habilis run` and `habilis chat`."""

from collections.abc import Callable, Sequence
from typing import Any

from habilis.agent.agent import Agent
from habilis.agent.context.instructions import parts_of
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.options import AnyTool, WorkOptions
from habilis.assistant.modes import plan_gate, with_mode
from habilis.assistant.project_instructions import ProjectInstructions
from habilis.cli.options import NATIVE_CHOICE
from habilis.cli.run.request import DEFAULT_LIBRARY, CommandRequest
from habilis.core.settings import Settings
from habilis.models.contract import Model
from habilis.sandbox.options import choose_backend
from habilis.tools import Approve


async def choose_sandbox(request: CommandRequest, settings: Settings, say: Callable[[str], None]) -> Settings:
    """The settings with the backend that the packages need, if it was left open. Says so if it is not the usual one.

    Raises `SettingsError` if the backend needs an option that was not given.
    """
    if settings.sandbox != 'auto':
        request.backend.settings_for(settings.sandbox)
        return settings
    name = await choose_backend(request.sandbox_settings)
    if name != 'wasm':
        say(NATIVE_CHOICE.format(name))
    return settings.model_copy(update={'sandbox': name})


def make_agent(
    request: CommandRequest,
    settings: Settings,
    model: Model,
    *,
    tools: Sequence[AnyTool],
    hooks: Sequence[Hook],
    approve: Approve | None,
    **more: Any,
) -> Agent:
    """An agent with the options of a request. `more`: further arguments of `Agent`."""
    options: WorkOptions = {**agent_options(request, settings), 'tools': tools, 'hooks': hooks}
    if request.mode is not None:
        options = with_mode(options, request.mode)
    if request.mode == 'plan':
        options['gates'] = [plan_gate(options.get('tools', ()))]
    if request.workspace is not None:
        project = project_instructions(request.workspace, model).text
        options['instructions'] = [*parts_of(options.get('instructions', '')), project]
    return Agent(model, approve=approve, **options, **more)


def project_instructions(workspace: str, model: Model) -> ProjectInstructions:
    """The instructions of the project in a workspace."""
    return ProjectInstructions(workspace, context_tokens=model.traits.context_tokens)


def agent_options(request: CommandRequest, settings: Settings) -> WorkOptions:
    """The options of the agent that a request asks for."""
    return {
        'workspace': request.workspace,
        'checkpoints': request.checkpoints,
        'sandbox_settings': {**request.sandbox_settings, **request.backend.settings_for(settings.sandbox)},
        'helpers': request.delegate,
        'library': True if (folder := request.library_folder) == DEFAULT_LIBRARY else folder,
        'settings': settings,
    }
