"""`McpServer`: the tools of an MCP server as a toolset."""

import asyncio
import contextlib
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from habilis.core.errors import ToolDefinitionError, ToolServerError
from habilis.tools.logs import LOGGER
from habilis.tools.mcp.connection import MISSING, ServerConnection, is_tool_change
from habilis.tools.mcp.descriptions import clean_line
from habilis.tools.mcp.invalid_tools import InvalidTools, without_invalid_tools
from habilis.tools.mcp.remote_tools import Listing, RemoteTools
from habilis.tools.mcp.schemas import identifier
from habilis.tools.mcp.server_requests import MAX_SAMPLES, Sample, elicit, roots_of, sample, with_consent
from habilis.tools.mcp.transports import Trouble, open_stdio
from habilis.tools.toolset import Toolset
from habilis.tools.toolsets.user import AskPerson, ask_person

if TYPE_CHECKING:
    import httpx2
    import mcp_types
    from mcp import Client
    from mcp.client.session import ClientRequestContext, IncomingMessage

MAX_TOOLS = 10_000
TIMEOUT = 60.0
"""Default timeout of a call, in seconds."""

_RUNNERS = re.compile(r'(python|node|uv|uvx|npx|bunx|deno|docker|podman)[\d.]*(\.exe|\.cmd)?')
_SERVER = re.compile(r'^mcp[-_]server[-_]|^server[-_]|^mcp[-_]|[-_](mcp|server)$')
_EVERYWHERE = frozenset({'index', 'main', 'server', 'dist', 'build', 'src', 'bin', '__main__', ''})


class McpServer(Toolset):
    """An MCP server. It is started when a run of its agent starts, and closed with the agent."""

    def __init__(
        self,
        command: str | Sequence[str] | None = None,
        *,
        url: str | None = None,
        name: str = '',
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        headers: Mapping[str, str] | None = None,
        auth: 'httpx2.Auth | None' = None,
        transport: Literal['http', 'sse'] = 'http',
        only: Collection[str] | None = None,
        rename: Mapping[str, str] | None = None,
        prefix: str = '',
        timeout: float = TIMEOUT,
        start_timeout: float = TIMEOUT,
        ask: AskPerson | None = None,
        sample: Sample | None = None,
        roots: Sequence[str | Path] = (),
        enabled: bool = True,
    ) -> None:
        """Nothing is started yet.

        Args:
            command: the command line that starts it, as text or as a list of words.
            url: its address, if it is running already.
            name: name of the toolset (default: from the command or the address).
            env: environment variables for it, beside PATH, HOME and a few others.
            cwd: folder to start it in.
            headers: for requests to its address.
            auth: for requests to its address, such as `OAuthClientProvider` of the SDK.
            transport: `http`, or `sse` for a server of the older kind.
            only: the tools to use, by the names that the server has for them (default: all).
            rename: other names for tools.
            prefix: put before the names of all tools.
            timeout: seconds that a call may take.
            start_timeout: seconds that it may take to start.
            ask: asks the user what the server wants to know during a call.
            sample: asks a model on behalf of the server (default: with `ask`, that of the agent, if the user agrees).
            roots: the folders that it is told to work in.
            enabled: whether its tools are enabled at the start.
        """
        self._words = shlex.split(command) if isinstance(command, str) else list(command or ())
        if bool(self._words) == bool(url):
            msg = 'an MCP server needs its command line or its url: McpServer("uvx server"), McpServer(url="https://…")'
            raise ToolDefinitionError(msg)
        super().__init__(name or _default_name(self._words, url), (), enabled)
        self._url, self._env, self._cwd = url or '', dict(env or {}), None if cwd is None else str(cwd)
        self._headers, self._auth, self._sse = dict(headers or {}), auth, transport == 'sse'
        self._only, self._rename, self._prefix = only, dict(rename or {}), prefix
        self._ask, self._sample = ask, sample
        self._samples = 0
        self._roots = [Path(folder).resolve() for folder in roots]
        self._listing: Listing | None = None
        self._invalid = InvalidTools()
        self._relisting: set[asyncio.Task[None]] = set()
        self.connection = ServerConnection(
            self.name, self._client, seconds=timeout, start_seconds=start_timeout, on_change=self._changed
        )

    @property
    def address(self) -> str:
        """Its command line or URL."""
        return shlex.join(self._words) if self._words else self._url

    def with_person(self, ask: AskPerson | None, roots: Sequence[str | Path]) -> 'McpServer':
        """This server, with what a program has for servers that it only knows by their address."""
        self._ask = self._ask or ask
        self._roots = self._roots or [Path(folder).resolve() for folder in roots]
        return self

    def offer_model(self, model: Sample) -> None:
        """Let the server ask this model, with the consent of the user each time; not if nobody can be asked."""
        if self._sample is None and (ask := self._ask) is not None:
            self._sample = with_consent(model, lambda question: ask_person(ask, question))

    async def opened(self, taken: Collection[str] = ()) -> Toolset:
        """Start the server if it is not running, and get its tools. Raises `ToolServerError`."""
        self.connection.try_again()
        self._samples = 0
        await self.connection.client()
        if self._listing is None:
            await self._list()
        return RemoteTools(self, frozenset(taken))

    async def close(self) -> None:
        """Stop the server, or the connection to it."""
        for task in self._relisting:
            task.get_loop().call_soon_threadsafe(task.cancel)
        self._listing = None
        await self.connection.close()

    @property
    def listing(self) -> Listing:
        """What the server offers now."""
        assert self._listing is not None, 'it is opened'
        return self._listing

    async def _list(self) -> None:
        found = await self.connection.request(lambda client, _: _fetch(client, self._invalid))
        self._listing = Listing(
            server=self.name,
            address=self.address,
            tools=found.tools,
            only=self._only,
            rename=self._rename,
            prefix=self._prefix,
            has_resources=found.has_resources,
            has_prompts=found.has_prompts,
            refused=dict(self._invalid.refused),
        )
        for name, reason in self._listing.refused.items():
            LOGGER.warning('the tool %s of the MCP server %s cannot be used: %s', name, self.name, reason)

    def _changed(self) -> None:
        """The server says that its tools have changed: get them for the next step of the run."""

        async def relist() -> None:
            try:
                await self._list()
            except ToolServerError as error:
                LOGGER.warning('%s', error)

        task = asyncio.get_running_loop().create_task(relist())
        self._relisting.add(task)
        task.add_done_callback(self._relisting.discard)

    # The client of the SDK --------------------------------------------------------------------------------------------

    def _client(self, trouble: Trouble) -> 'Client':
        try:
            from mcp import Client
            from mcp_types import Implementation
        except ImportError as error:
            raise ToolServerError(MISSING) from error
        from habilis._version import __version__

        if self._words:
            transport = open_stdio(self._words, env=self._env, cwd=self._cwd, trouble=trouble)
        else:
            from habilis.tools.mcp.http_transport import open_http

            transport = open_http(self._url, headers=self._headers, auth=self._auth, sse=self._sse)
        self._invalid = InvalidTools()
        return Client(
            without_invalid_tools(transport, self._invalid),
            client_info=Implementation(name='habilis', version=__version__),
            message_handler=self._heard,
            logging_callback=self._logged,
            log_level='info',
            elicitation_callback=None if self._ask is None else self._elicit,
            sampling_callback=None if self._sample is None else self._sampled,
            list_roots_callback=self._list_roots if self._roots else None,
            cache=None,
        )

    async def _heard(self, message: 'IncomingMessage') -> None:
        if is_tool_change(message):
            self._changed()

    async def _logged(self, params: 'mcp_types.LoggingMessageNotificationParams') -> None:
        line, call = f'{params.level}: {clean_line(str(params.data), 500)}', self.connection.active
        if call is not None and call.channel is not None:
            call.channel.log(line)
        else:
            LOGGER.info('%s: %s', self.name, line)

    async def _elicit(
        self, context: 'ClientRequestContext', params: 'mcp_types.ElicitRequestParams'
    ) -> 'mcp_types.ElicitResult | mcp_types.ErrorData':
        from mcp_types import ElicitResult

        call, ask = self.connection.active, self._ask
        if call is None or ask is None:  # nobody has asked the server for anything
            return ElicitResult(action='cancel')
        return await call.in_call(lambda: elicit(self.name, params, lambda question: ask_person(ask, question)))

    async def _sampled(
        self, context: 'ClientRequestContext', params: 'mcp_types.CreateMessageRequestParams'
    ) -> 'mcp_types.CreateMessageResult | mcp_types.ErrorData':
        from mcp_types import INVALID_REQUEST, ErrorData

        call, ask_model = self.connection.active, self._sample
        if call is None or ask_model is None:
            return ErrorData(code=INVALID_REQUEST, message='no call is under way')
        self._samples += 1
        if self._samples > MAX_SAMPLES:
            return ErrorData(code=INVALID_REQUEST, message=f'a model is asked at most {MAX_SAMPLES} times')
        return await call.in_call(lambda: sample(self.name, params, ask_model))

    async def _list_roots(self, context: 'ClientRequestContext') -> 'mcp_types.ListRootsResult | mcp_types.ErrorData':
        return roots_of(self._roots)


@dataclass(kw_only=True)
class _Offered:
    tools: 'list[mcp_types.Tool]' = field(default_factory=list)
    has_resources: bool = False
    has_prompts: bool = False


async def _fetch(client: 'Client', invalid: InvalidTools) -> _Offered:
    """What the server offers. Many declare resources and prompts, and have none."""
    found, able = _Offered(), client.server_capabilities
    cursor: str | None = None
    invalid.refused.clear()
    while able.tools is not None and len(found.tools) < MAX_TOOLS:
        page = await invalid.list_page(client, cursor)
        found.tools += page.tools
        if not (cursor := page.next_cursor):
            break
    if able.resources is not None:
        found.has_resources = bool((await client.list_resources(cache_mode='refresh')).resources)
        if not found.has_resources:
            with contextlib.suppress(Exception):  # a server need not have templates
                templates = await client.list_resource_templates(cache_mode='refresh')
                found.has_resources = bool(templates.resource_templates)
    if able.prompts is not None:
        found.has_prompts = bool((await client.list_prompts(cache_mode='refresh')).prompts)
    return found


def _default_name(words: Sequence[str], url: str | None) -> str:
    """A name from what a person recognizes in a command line or an address."""
    if url:
        return identifier((urlsplit(url).hostname or 'server').removeprefix('www.'))
    program = Path(words[0]).name
    rest = [word for word in words[1:] if not word.startswith('-')] if _RUNNERS.fullmatch(program) else []
    parts = re.split(r'[/\\]', rest[0]) if rest else [program]
    stems = [re.sub(r'\.(py|js|ts|mjs|exe|cmd)$|(?<=.)@[\w.^~-]+$', '', part) for part in reversed(parts) if part]
    stem = next((stem for stem in stems if stem not in _EVERYWHERE), stems[0])
    return identifier(_SERVER.sub('', stem) or stem)
