"""The protocol: what the official SDK calls, for any transport. With `stdio.py` and `http.py`, all that imports it."""

import asyncio
import base64
import contextlib
import functools
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from habilis._version import __version__
from habilis.core.errors import HabilisError, RunNotFound
from habilis.server.mcp.calls import Close, McpAnswer, McpCall, McpTool
from habilis.server.mcp.settings import McpSettings
from habilis.server.registry import SandboxRegistry
from habilis.server.settings import LOCAL

try:
    from mcp import types
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import NotificationOptions, Server
    from mcp.server.models import InitializationOptions
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
    from mcp.shared.exceptions import MCPError
    from mcp.types.version import MODERN_PROTOCOL_VERSIONS
except ImportError as error:
    msg = 'the MCP SDK is missing: pip install "habilis[mcp]"'
    raise ImportError(msg) from error

if TYPE_CHECKING:
    from habilis.server.mcp.apps import App
    from habilis.server.mcp.catalog import McpCatalog
    from habilis.server.mcp.run_history import RunHistory

PROGRESS_SECONDS = 1.0
"""How often a client hears of a call that says nothing."""

PAUSE_SECONDS = 0.1
"""The least time between two reports."""

WATCH_SECONDS = 1.0
"""How often the library is looked at for new tools."""

LISTED_RUNS = 20
STDIO = 'stdio'
JSON = 'application/json'
_Context = ServerRequestContext[None, Any]
logger = logging.getLogger('habilis.server')


class McpService(Server[None]):
    """Serves the tools and the run history to clients. One object serves any number of sessions."""

    def __init__(self, settings: McpSettings, apps: 'Sequence[App]' = ()) -> None:
        self._settings = settings
        self._given = apps
        self.registry = SandboxRegistry(settings.service)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._watcher: asyncio.Task[None] | None = None
        self._connections: WeakSet[Connection] = WeakSet()
        self._bus = InMemorySubscriptionBus()
        has_runs = settings.open_journal is not None
        super().__init__(
            'habilis',
            version=__version__,
            instructions='`python` runs code in a sandbox; use it to compute, and to work with data and files.',
            lifespan=self._lifespan,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self._bus),
            on_list_resources=self._list_resources if has_runs else None,
            on_list_resource_templates=self._list_templates if has_runs else None,
            on_read_resource=self._read_resource if has_runs else None,
        )
        if apps:
            _ = self._catalog  # refuses what cannot be served before there is a client

    @functools.cached_property
    def _catalog(self) -> 'McpCatalog':
        from habilis.server.mcp.catalog import McpCatalog  # imports the agent: after the first answer

        return McpCatalog(self._settings, self.registry, self._given)

    @functools.cached_property
    def _history(self) -> 'RunHistory':
        from habilis.server.mcp.run_history import RunHistory

        return RunHistory(self._settings)

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **kwargs: Any
    ) -> InitializationOptions:
        """The description of the server for `initialize`."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, *args, **kwargs)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _server: object) -> AsyncGenerator[None]:
        sweeper = asyncio.create_task(self.registry.sweep())
        try:
            yield
        finally:
            if self._tasks or self.registry.count:
                from habilis.flows.tasks import uncancelled  # the SDK may cancel this task again and again

                await uncancelled(_end({*self._tasks, sweeper}))
            sweeper.cancel()  # not before: cancelled twice, it would leave its sandboxes open

    # Tools ------------------------------------------------------------------------------------------------------------

    async def _list_tools(self, ctx: _Context, _params: object) -> types.ListToolsResult:
        if self._settings.library is not None:
            self._connections.add(_connection(ctx))
            if self._watcher is None:
                self._watcher = self._start(self._watch_library())
        listed = await asyncio.to_thread(self._catalog.listed, takes_session=not _has_session(ctx))
        return types.ListToolsResult(tools=[_definition(one) for one in listed])

    async def _call_tool(self, ctx: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        found = await asyncio.to_thread(self._catalog.find, params.name, takes_session=ctx.request is not None)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f'Unknown tool: {params.name[:100]}')
        status = _Status()
        # In tasks of their own: the SDK cancels its tasks again and again, until they end, and so would stop cleanups.
        work = self._start(_answer(found, _call(ctx, status), params.arguments or {}))
        reporter = self._start(_report(ctx, status))
        try:
            return _result(await asyncio.shield(work))
        finally:
            work.cancel()
            reporter.cancel()

    def _start(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _watch_library(self) -> None:
        known = await asyncio.to_thread(self._catalog.names)
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            names = await asyncio.to_thread(self._catalog.names)
            if names != known:
                known = names
                await self._bus.publish(ToolsListChanged())
                for connection in list(self._connections):
                    await connection.notify('notifications/tools/list_changed', None)

    # Resources --------------------------------------------------------------------------------------------------------

    async def _list_resources(self, _ctx: _Context, _params: object) -> types.ListResourcesResult:
        from habilis.server.mcp.run_history import RUNS, run_uri

        every = types.Resource(name='runs', uri=RUNS, mime_type=JSON, description='The newest runs of agents and flows')
        runs = [
            types.Resource(name=one.info.run, title=one.info.title or None, uri=run_uri(one), mime_type=JSON)
            for one in await self._history.newest(LISTED_RUNS)
        ]
        return types.ListResourcesResult(resources=[every, *runs])

    async def _list_templates(self, _ctx: _Context, _params: object) -> types.ListResourceTemplatesResult:
        from habilis.server.mcp.run_history import RUNS

        described = 'A run with its steps: code, output, tool calls and answer'
        run = types.ResourceTemplate(name='run', uri_template=f'{RUNS}/{{id}}', mime_type=JSON, description=described)
        return types.ListResourceTemplatesResult(resource_templates=[run])

    async def _read_resource(self, _ctx: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            text = await self._history.read(params.uri)
        except RunNotFound:
            text = None
        if text is None:
            raise MCPError(types.INVALID_PARAMS, 'Resource not found', {'uri': params.uri})
        content = types.TextResourceContents(uri=params.uri, mime_type=JSON, text=text)
        return types.ReadResourceResult(contents=[content])


class _Status:
    """What a running call has said last."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.changed = asyncio.Event()

    def say(self, text: str) -> None:
        self.text = text
        self.changed.set()


async def _report(ctx: _Context, status: _Status) -> None:
    """Tell the client how long its call has been running, and what it does."""
    started = time.monotonic()
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PROGRESS_SECONDS):
                await status.changed.wait()
        status.changed.clear()
        await ctx.session.report_progress(time.monotonic() - started, message=status.text)
        await asyncio.sleep(PAUSE_SECONDS)


async def _answer(found: McpTool, call: McpCall, given: dict[str, Any]) -> McpAnswer:
    try:
        return await found.answer(call, found.tool.validate_json(given))
    except HabilisError as error:
        return McpAnswer(text=str(error), is_error=True)
    except Exception as error:  # code of the user's program may raise anything, and its model should know
        logger.exception('the tool %s failed', found.tool.name)
        return McpAnswer(text=f'{type(error).__name__}: {error}', is_error=True)


def _call(ctx: _Context, status: _Status) -> McpCall:
    request = ctx.request
    if request is None:

        def stay(_close: Close) -> None:  # the process ends with its client, and then all is closed
            pass

        return McpCall(owner=LOCAL, session=STDIO, say=status.say, at_end=stay)
    return McpCall(
        owner=request.scope['owner'],
        session=request.headers.get('mcp-session-id') if _has_session(ctx) else None,
        say=status.say,
        at_end=_connection(ctx).exit_stack.push_async_callback,
    )


def _connection(ctx: _Context) -> Connection:
    """The connection of a session, which has no other name yet for handlers of this kind."""
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage]


def _has_session(ctx: _Context) -> bool:
    """Since 2026-07-28 requests over HTTP stand alone. A process with stdin and stdout has one client anyway."""
    return ctx.request is None or ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS


def _definition(one: McpTool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=one.is_read_only, destructive_hint=not one.is_read_only, open_world_hint=one.is_open
    )
    return types.Tool(
        name=one.tool.name, description=one.tool.description, input_schema=one.tool.parameters, annotations=hints
    )


def _result(answer: McpAnswer) -> types.CallToolResult:
    pictures = [
        types.ImageContent(data=base64.b64encode(_bytes(one.data)).decode('ascii'), mime_type=one.mime)
        for one in answer.pictures
    ]
    return types.CallToolResult(
        content=[types.TextContent(text=answer.text), *pictures],
        structured_content=answer.data,
        is_error=answer.is_error,
    )


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait for their cleanup."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
