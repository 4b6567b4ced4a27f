"""`Shell`: the tool `bash`, which runs commands inside the sandbox of the run."""

import math
from typing import Annotated

from habilis.core.codec import Json
from habilis.core.errors import SandboxError, ToolCallError
from habilis.core.narrowing import fields_in
from habilis.sandbox.contract import Side
from habilis.sandbox.host.deadline import current_deadline
from habilis.sandbox.host.guest_work import current_port
from habilis.tools.contract import ToolOptions
from habilis.tools.logs import sandbox
from habilis.tools.tool import Tool
from habilis.tools.toolset import Toolset
from habilis.tools.toolsets.shell_policy import CommandPolicy
from habilis.tools.toolsets.shell_tips import tip_for

MAX_OUTPUT = 30_000
"""Maximum number of bytes of each stream; of longer output the first and the last half are kept."""

GRACE = 2.0
"""Seconds that are left of the time limit of the cell when a command is stopped, so that the cell can go on."""

MIN_SECONDS = 0.1


class Shell(Toolset):
    """The toolset `shell`: `bash` runs a command in the sandbox, never on the host."""

    def __init__(
        self,
        *,
        workdir: str = '.',
        timeout: float = 60.0,
        policy: CommandPolicy | None = None,
        needs_approval: bool = False,
        enabled: bool = True,
        side: Side = 'code',
    ) -> None:
        """Create the toolset.

        Args:
            workdir: the folder of commands that name none; `.` is that of the code.
            timeout: time limit of a command in seconds, if a call names none.
            policy: which commands may be run; all by default.
            needs_approval: a person must approve each command. Then code cannot change the workspace, and a command
                runs in a sandbox of its own, which can.
            enabled: whether it is enabled at the start.
            side: who may call `bash`, as for `@tool`.
        """
        options = ToolOptions(as_sync=True, idempotent=False, needs_approval=needs_approval, side=side)
        made = Tool(self.bash, options=options)
        made.uses_guest = True
        super().__init__('shell', [made], enabled=enabled)
        self.needs_processes = True
        self.asks_to_change = ('bash',) if needs_approval else ()
        self.workdir = workdir
        """The folder of commands that name none. May be changed at any time."""

        self.timeout = timeout
        self.policy = policy

    async def bash(
        self,
        command: str,
        workdir: Annotated[str | None, 'folder to run it in'] = None,
        timeout: Annotated[float | None, 'time limit in seconds'] = None,
    ) -> str:
        """Run a shell command. Returns what it prints; then errors and the exit code, if it fails."""
        if self.policy is not None:
            self.policy.check(command)
        seconds = self.timeout if timeout is None else timeout
        if not (math.isfinite(seconds) and seconds > 0):
            msg = f'timeout must be a number of seconds greater than 0, not {seconds!r}'
            raise ToolCallError(msg)
        current = sandbox()
        if current is not None and (reason := current.why_no_processes):
            msg = f'this sandbox cannot start processes: {reason}'
            raise ToolCallError(msg)
        port, deadline = current_port.get(), current_deadline.get()
        left = math.inf if port is None or deadline is None else deadline.remaining() - GRACE
        allowed = max(MIN_SECONDS, min(seconds, left))
        work: dict[str, Json] = {
            'command': command,
            'workdir': workdir or self.workdir,
            'seconds': allowed,
            'limit': MAX_OUTPUT,
        }
        if current is not None and current.write_advice and self.asks_to_change:  # a person has approved it
            async with await current.sibling(files='writable') as writer:
                result = await writer.do_work(work, allowed + GRACE)
        elif port is not None:
            result = await port.run(work)
        elif current is None:
            msg = 'bash runs in the sandbox of an agent, and there is none here'
            raise ToolCallError(msg)
        else:
            result = await current.do_work(work, allowed + GRACE)
        advice = current.write_advice if current is not None else ''
        return _text(command, result, allowed, is_cut=allowed < seconds, advice=advice)


def _text(command: str, result: Json, seconds: float, *, is_cut: bool, advice: str) -> str:
    """What the model sees. The guest is not trusted, so its answer is checked."""
    answer = fields_in(result)
    code, stdout, stderr = (answer.get(name) for name in ('exit_code', 'stdout', 'stderr'))
    if not isinstance(code, int) or not isinstance(stdout, str) or not isinstance(stderr, str):
        msg = 'the sandbox gave no proper answer about the command'
        raise SandboxError(msg)
    if code == 0 and not stderr:
        return stdout
    parts = [stdout.rstrip('\n'), f'[stderr]\n{stderr.rstrip()}' if stderr else '']
    if answer.get('timed_out') is True:
        why = ', because the time of the cell is over: split it, or raise Limits(seconds=…)' if is_cut else ''
        parts.append(f'[stopped after {seconds:.3g} s{why}]')
    elif code:
        parts.append(f'[exit code {code}]')
        if tip := tip_for(command, code, stderr, write_advice=advice):
            parts.append(f'[tip: {tip}]')
    return '\n'.join(part for part in parts if part)
