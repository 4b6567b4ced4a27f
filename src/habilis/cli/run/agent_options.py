"""The agent that a request asks for, for `habilis run` and `habilis chat`."""

from collections.abc import Callable, Sequence
from typing import Any

from habilis.agent.agent import Agent
from habilis.agent.agent_tools import each_tool, why_no_processes_in
from habilis.agent.context.instructions import parts_of
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.options import AnyTool, WorkOptions
from habilis.assistant.modes import plan_gate, plan_tools, with_mode
from habilis.assistant.project_instructions import ProjectInstructions
from habilis.cli.options import NATIVE_CHOICE
from habilis.cli.run.request import DEFAULT_LIBRARY, CommandRequest
from habilis.core.settings import Settings
from habilis.journal.stores.urls import OFF
from habilis.models.contract import Model
from habilis.sandbox.options import choose_backend
from habilis.tools import Approve
from habilis.tools.skills.skill import Skill
from habilis.tools.skills.sources import find_skills, load_skills


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
    say: Callable[[str], None],
    **more: Any,
) -> Agent:
    """An agent with the options of a request. `more`: further arguments of `Agent`."""
    options: WorkOptions = {**agent_options(request, settings, tools, say), 'tools': tools, 'hooks': hooks}
    if request.mode is not None:
        options = with_mode(options, request.mode)
    if request.mode == 'plan':
        options['tools'] = plan_tools(options.get('tools', ()))
        options['gates'] = [plan_gate(options['tools'])]
    if request.workspace is not None:
        project = project_instructions(request.workspace, model).text
        options['instructions'] = [*parts_of(options.get('instructions', '')), project]
    return Agent(model, approve=approve, **options, **more)


def project_instructions(workspace: str, model: Model) -> ProjectInstructions:
    """The instructions of the project in a workspace."""
    return ProjectInstructions(workspace, context_tokens=model.traits.context_tokens)


def agent_options(
    request: CommandRequest, settings: Settings, tools: Sequence[AnyTool], say: Callable[[str], None]
) -> WorkOptions:
    """The options of the agent that a request asks for. Says which skills it has."""
    return {
        'skills': _skills(request, settings, tools, say),
        'workspace': request.workspace,
        'checkpoints': request.checkpoints,
        'sandbox_settings': {**request.sandbox_settings, **request.backend.settings_for(settings.sandbox)},
        'helpers': request.delegate,
        'library': True if (folder := request.library_folder) == DEFAULT_LIBRARY else folder,
        'settings': settings,
    }


def _skills(
    request: CommandRequest, settings: Settings, tools: Sequence[AnyTool], say: Callable[[str], None]
) -> Sequence[Skill]:
    """The skills that are named, and those that are found and can be used. Raises `SkillError` for the former only."""
    if OFF in request.skills:
        return ()
    skills = {skill.name: skill for skill in load_skills(request.skills)}
    found, names = find_skills(request.workspace), [tool.name for tool in each_tool(tools)]
    no_processes = why_no_processes_in(settings.sandbox, request.sandbox_settings)
    refused = list(found.refused)
    for skill in found.skills:
        if skill.name not in skills and (why := skill.missing_tool(names, no_processes)):
            refused.append(why)
        else:
            skills.setdefault(skill.name, skill)
    for reason in refused:
        say(f'left out: {reason}')
    if skills:
        say(f'skills: {", ".join(skills)}')
    return list(skills.values())
