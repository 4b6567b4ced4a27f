"""Shell commands of the user: run in a sandbox with the files of the session, and told to the model afterwards."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from habilis.agent.agent_tools import why_no_processes_in
from habilis.agent.context.truncation import Bounds, truncate
from habilis.agent.options import WorkOptions, sandbox_settings_from
from habilis.assistant.modes import Mode
from habilis.core.errors import AgentError, SandboxError
from habilis.core.limits import Limits
from habilis.core.settings import load_settings
from habilis.memory import Memory
from habilis.sandbox import Sandbox
from habilis.sandbox.options import BackendSettings, SandboxSettings
from habilis.tools import Shell

ROLE = 'tool'
"""Role of a command in the memory."""

MAX_SECONDS = 3600.0
"""Time limit of a command. The user can stop it at any time."""

WITH_PROCESSES = 'process'
"""The backend for commands where that of the session starts no processes."""

MAX_UNSENT = 20
BOUNDS = Bounds()
_CELL = """\
import os, subprocess
shell = '/bin/bash' if os.path.exists('/bin/bash') else '/bin/sh'
subprocess.run([shell, '-c', {!r}], stdin=subprocess.DEVNULL).returncode"""


@dataclass(frozen=True, kw_only=True)
class CommandRun:
    """A command that has ended."""

    command: str
    output: str
    """What it printed, errors among it."""

    problem: str = ''
    """How it failed, such as `exit code 2`; empty if it did not."""

    is_stopped: bool = False
    """Whether the user has stopped it."""

    @property
    def text(self) -> str:
        """What the memory and the model get of it."""
        output = truncate(self.output.strip('\n'), BOUNDS).text
        lines = [f'$ {self.command}', output, f'[{self.problem}]' if self.problem else '']
        return '\n'.join(line for line in lines if line)


async def run_command(command: str, options: WorkOptions, mode: Mode, show: Callable[[str], None]) -> CommandRun:
    """Run a command; `show` is called with what it prints. One that is cancelled ends here. Raises `HabilisError`.

    The user has typed it, so nobody is asked. It can change the files that the session may change, except in the mode
    `plan`, and the policy of a `Shell` of the session holds.
    """
    for toolset in options.get('tools', ()):
        if isinstance(toolset, Shell) and toolset.policy is not None:
            toolset.policy.check(command)
    printed: list[str] = []

    def take(_: object, text: str) -> None:
        printed.append(text)
        show(text)

    try:
        async with await _sandbox(options, mode) as sandbox:
            cell = await sandbox.run(_CELL.format(command), on_output=take)
    except asyncio.CancelledError:
        output = ''.join(printed)
        return CommandRun(command=command, output=output, problem='stopped by the user', is_stopped=True)
    failed = f'exit code {cell.value}' if cell.value else ''
    problem = failed if cell.error is None else str(cell.error)
    return CommandRun(command=command, output=''.join(printed), problem=problem)


async def _sandbox(options: WorkOptions, mode: Mode) -> Sandbox:
    """A sandbox with the files and the network of the session that starts processes."""
    given, settings = options.get('sandbox'), options.get('settings') or load_settings()
    if not isinstance(given, str | None):
        msg = 'commands need a sandbox that the session creates, and this one was passed in'
        raise AgentError(msg)
    named = {name: options.get(name) for name in ('workspace', 'network')}
    made = sandbox_settings_from(options.get('sandbox_settings') or {}, named, given or settings.sandbox, settings)
    name = given or settings.sandbox
    if why_no_processes_in(name, made):
        name, unused = WITH_PROCESSES, {*BackendSettings.__annotations__, 'packages'}
        made = SandboxSettings(**{key: value for key, value in made.items() if key not in unused})  # pyright: ignore[reportArgumentType]
    made['workspace'] = made.get('workspace') or True  # an empty folder, where none is shared
    made['read_only'] = mode == 'plan' or made.get('read_only') is True
    made['limits'] = replace(made.get('limits') or Limits(), seconds=MAX_SECONDS)
    made['checkpoints'] = False
    try:
        return await Sandbox.create(name, **made)
    except SandboxError as error:
        msg = f'a command needs a sandbox that starts processes: {error}'
        raise SandboxError(msg) from error


def attached_text(commands: Sequence[str]) -> str:
    """What a message says about the commands before it."""
    return ''.join(f'\n\n<command by="user">\n{text}\n</command>' for text in commands)


async def unsent_commands(memory: Memory, session: str) -> list[str]:
    """What the commands after the last message of a conversation have printed: the next message takes it along."""
    found: list[str] = []
    for turn in reversed(await memory.turns(session, limit=MAX_UNSENT)):
        if turn.role != ROLE:
            break
        found.insert(0, turn.text)
    return found
