"""The tool `python`: a sandbox for each session of a client, whose variables stay from call to call."""

import asyncio
import inspect

from habilis.agent.context.observation import observe
from habilis.agent.context.truncation import Bounds, truncate
from habilis.core.errors import ToolCallError
from habilis.core.limits import Limits
from habilis.sandbox.contract import Cell
from habilis.sandbox.session import Sandbox
from habilis.server.mcp.calls import McpAnswer, McpCall, McpTool
from habilis.server.mcp.settings import McpSettings
from habilis.server.registry import SandboxRegistry, TooMany
from habilis.server.sandbox_host import HostedSandbox
from habilis.tools.tool import AnyTool, Tool

NAME = 'python'
NEW = 'new'
MAX_CODE = 1_000_000
"""Characters of one cell."""

MAX_STATUS = 200
"""Characters of the last line of output, shown while a cell runs."""

_NEW_SESSION = 'The sandbox of this session was closed, because it was not used for long: all variables are new.'


class PythonTool:
    """Runs cells. Over HTTP a client may get an id with the first answer, and pass it on as `session`."""

    def __init__(self, settings: McpSettings, registry: SandboxRegistry) -> None:
        self._settings = settings
        self._registry = registry
        self._sandboxes: dict[str, str] = {}  # by session
        self._starting: dict[str, asyncio.Lock] = {}

    def tool(self, *, takes_session: bool) -> McpTool:
        """The tool, with a parameter for the id of a session or without."""
        given = self._settings.sandbox
        changes_files = bool(given.get('workspace')) and not given.get('read_only')
        return McpTool(
            tool=self._describe(takes_session=takes_session),
            answer=self._answer,
            is_read_only=not changes_files and not given.get('network'),
            is_open=bool(given.get('network')),
        )

    def _describe(self, *, takes_session: bool) -> AnyTool:
        async def in_session(code: str) -> None: ...

        async def with_id(code: str, session: str | None = None) -> None: ...

        made = Tool[..., object](with_id if takes_session else in_session, name=NAME)
        given = self._settings.sandbox
        limits = given.get('limits') or Limits()
        packages = [str(package) for package in given.get('packages') or ()]
        rights = 'read' if given.get('read_only') else 'read and write'
        made.description = ' '.join(
            [
                'Run Python in a sandbox.',
                'You get what it prints, the value of the last expression, errors and pictures.',
                'To keep variables, functions and imports, pass the `session` that the first answer names.'
                if takes_session
                else 'Variables, functions and imports stay for the next call.',
                f'Code may {rights} the files of the folder /workspace, its current folder.'
                if given.get('workspace')
                else 'No files of the user are there.',
                f'Besides the standard library there is: {", ".join(packages)}.' if packages else '',
                'It can reach some hosts of the network.' if given.get('network') else 'There is no network.',
                f'A call may take {limits.seconds:g} s.',
            ]
        ).replace('  ', ' ')
        return made

    async def _answer(self, call: McpCall, arguments: inspect.BoundArguments) -> McpAnswer:
        code, wanted = str(arguments.arguments['code']), arguments.arguments.get('session')
        if len(code) > MAX_CODE:
            msg = f'the code has {len(code):,} characters; {MAX_CODE:,} are allowed: read data from a file instead'
            raise ToolCallError(msg)
        try:
            name, sandbox, note = await self._find(call, wanted)
        except TooMany as error:
            raise ToolCallError(str(error)) from None
        if call.session is None or wanted is not None:
            note = f'session: {name}'

        def show(_stream: object, text: str) -> None:
            if lines := text.split():
                call.say(' '.join(lines)[-MAX_STATUS:])

        cell = await sandbox.run(code, on_output=show, describe=True)
        return await _describe(cell, sandbox, note)

    async def _find(self, call: McpCall, wanted: str | None) -> tuple[str, Sandbox, str]:
        """The sandbox of a session, with its id and a note for the client; a new one for a new session.

        A session that is asked for by its id, or with `new`, does not end with the connection of the client.
        """
        if call.session is None or wanted is not None:
            if wanted is None or wanted == NEW:
                return *await self._start(call), ''
            if (found := self._hosted(call, wanted)) is None:
                idle = self._settings.service.idle_seconds
                msg = f'there is no such session; after {idle:g} s without use it is closed. Leave it out for a new one'
                raise ToolCallError(msg)
            return wanted, found, ''
        async with self._starting.setdefault(call.session, asyncio.Lock()):
            name = self._sandboxes.get(call.session, '')
            if (found := self._hosted(call, name)) is not None:
                return name, found, ''
            self._sandboxes[call.session], sandbox = await self._start(call)
            if name:
                return name, sandbox, _NEW_SESSION
            session = call.session
            call.at_end(lambda: self._end(session))
            return name, sandbox, ''

    def _hosted(self, call: McpCall, name: str) -> Sandbox | None:
        found = self._registry.find(call.owner, name)
        return found.sandbox if isinstance(found, HostedSandbox) else None

    async def _start(self, call: McpCall) -> tuple[str, Sandbox]:
        async def make() -> HostedSandbox:
            service = self._settings.service
            return HostedSandbox(await Sandbox.create(service.backend, **self._settings.sandbox), service)

        call.say('starting a sandbox')
        name, hosted = await self._registry.start(call.owner, make)
        return name, hosted.sandbox

    async def _end(self, session: str) -> None:
        self._starting.pop(session, None)
        await self._registry.remove(self._sandboxes.pop(session, ''))


async def _describe(cell: Cell, sandbox: Sandbox, note: str) -> McpAnswer:
    """A cell as the model of an agent sees it, with its pictures. Text that was too long stays in a variable."""
    bounds = Bounds()
    taken = {} if cell.rolled_back else await sandbox.describe_variables()
    seen = observe(cell, number=1, bounds=bounds, taken=taken, note=note)
    if seen.kept and not cell.rolled_back:
        await sandbox.set_variables(seen.kept)
    shown = [
        truncate(str(display.data), bounds).text
        for display in cell.displays
        if not display.mime.startswith('image/') and (cell.text is None or display.mime == 'text/plain')
    ]
    pictures = [display for display in cell.displays if display.mime.startswith('image/')]
    return McpAnswer(text='\n'.join([*shown, seen.text]), pictures=tuple(pictures), is_error=not cell.ok)
