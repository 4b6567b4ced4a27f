"""Permission modes of a session: what may be changed without a question. Code, tools and commands obey them alike.

| mode | files | commands |
|---|---|---|
| `ask` | a person approves each change | a person approves each command |
| `edits` | may be changed | a person approves each command |
| `plan` | read-only | run where files are read-only |
| `all` | may be changed | run |

They are made of what an agent has: `Files` and `Shell` with or without approval, and a sandbox whose code can change no
files while one of them asks.
"""

from collections.abc import Iterable
from importlib.resources import files
from typing import Literal, get_args

from habilis.agent.agent_tools import each_tool, resolve_tools, why_no_processes_in
from habilis.agent.context.instructions import parts_of
from habilis.agent.options import DELEGATE, AnyTool, WorkOptions
from habilis.core.errors import AgentError
from habilis.core.settings import load_settings
from habilis.sandbox.options import SandboxSettings
from habilis.tools import Deny, Files, Gate, GateCall, Shell, Toolset

Mode = Literal['ask', 'edits', 'plan', 'all']
MODES: tuple[Mode, ...] = get_args(Mode)
PLAN_ADVICE = 'nothing can be changed in plan mode: look, and answer with a plan'


def check_mode(mode: str) -> Mode:
    """The mode of this name. Raises `AgentError` if there is none."""
    for known in MODES:
        if mode == known:
            return known
    msg = f'no such mode: {mode!r:.40}; there are {", ".join(MODES)}'
    raise AgentError(msg)


def default_mode(options: WorkOptions) -> Mode:
    """`ask` where a folder is shared for writing, else `all`. Toolsets that the user has given may say otherwise."""
    is_read_only = bool((options.get('sandbox_settings') or {}).get('read_only'))
    return 'ask' if _shares_files(options) and not is_read_only and not _not_asking(options, 'ask') else 'all'


def with_mode(options: WorkOptions, mode: Mode) -> WorkOptions:
    """The options of an agent that works in this mode. Raises `AgentError` for a sandbox that cannot."""
    if not isinstance(options.get('sandbox'), str | None):
        if mode != 'all':
            msg = f'the mode {mode} needs a sandbox that the session creates, and this one was passed in'
            raise AgentError(msg)
        return options
    if lax := _not_asking(options, mode):
        msg = f'the mode {mode} needs approval of what {lax[0]} does: pass the toolset with needs_approval=True'
        raise AgentError(msg)
    tools: list[AnyTool] = [*options.get('tools', ()), *_file_tools(options, mode)]
    made: WorkOptions = {**options, 'tools': tools}
    if mode == 'plan':
        settings: SandboxSettings = {**(options.get('sandbox_settings') or {})}
        settings['read_only'] = settings.get('read_only') or PLAN_ADVICE
        text = files('habilis.assistant').joinpath('plan.md').read_text(encoding='utf-8').strip()
        made['sandbox_settings'] = settings
        made['instructions'] = [*parts_of(options.get('instructions', '')), text]
    return made


def plan_tools(tools: Iterable[AnyTool]) -> list[AnyTool]:
    """The tools of plan mode: those that change nothing, and commands, which have the same rights as code."""
    found: list[AnyTool] = []
    for one in resolve_tools(tools):
        toolset = one if isinstance(one, Toolset) else Toolset('', [one])
        if isinstance(one, Shell) and not one.asks_to_change:
            found.append(one)
        elif (reading := toolset.reading()).tools:
            found.append(reading)
    return found


def plan_gate(tools: Iterable[AnyTool]) -> Gate:
    """Refuses calls of other tools than those of plan mode, such as those of a library."""
    offered = {DELEGATE, *(tool.name for tool in each_tool(tools))}

    def only_reads(call: GateCall) -> Deny | None:
        return None if call.tool in offered else Deny(f'it may change something, and {PLAN_ADVICE}')

    return only_reads


def _file_tools(options: WorkOptions, mode: Mode) -> list[Toolset]:
    """The toolsets `files` and `shell` for the shared folder, unless the user has given their own."""
    if not _shares_files(options):
        return []
    own = {toolset.name for toolset in _own(options)}
    files = Files(needs_approval=mode == 'ask')
    made = [files.reading() if (options.get('sandbox_settings') or {}).get('read_only') else files]
    given = options.get('sandbox')
    sandbox = given if isinstance(given, str) else (options.get('settings') or load_settings()).sandbox
    if not why_no_processes_in(sandbox, options.get('sandbox_settings') or {}):
        made.append(Shell(needs_approval=mode in ('ask', 'edits')))
    return [toolset for toolset in made if toolset.name not in own]


def _own(options: WorkOptions) -> list[Toolset]:
    return [one for one in options.get('tools', ()) if isinstance(one, Files | Shell)]


def _not_asking(options: WorkOptions, mode: Mode) -> list[str]:
    """The names of toolsets of the user that do without a question what this mode wants to be asked about."""
    kinds = {'ask': (Files, Shell), 'edits': (Shell,)}.get(mode, ())
    return [one.name for one in _own(options) if isinstance(one, kinds) and not one.asks_to_change]


def _shares_files(options: WorkOptions) -> bool:
    folder = options.get('workspace') or (options.get('sandbox_settings') or {}).get('workspace')
    return isinstance(options.get('sandbox'), str | None) and folder is not None and not isinstance(folder, bool)
