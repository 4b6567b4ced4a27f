"""The tools of an MCP server as ordinary tools: names, type hints, options, and the call itself."""

import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from habilis.core.errors import ToolDefinitionError
from habilis.core.narrowing import is_dict
from habilis.core.similar_names import similar_names
from habilis.tools.contract import ToolOptions
from habilis.tools.events import NoticeEvent
from habilis.tools.logs import emit
from habilis.tools.mcp.connection import ActiveCall, ServerConnection
from habilis.tools.mcp.descriptions import clean, clean_line, fingerprint
from habilis.tools.mcp.known_tools import KnownTools, State
from habilis.tools.mcp.results import text_of_prompt, text_of_resource, value_of
from habilis.tools.mcp.schemas import SchemaRefused, SchemaTypes, identifier, optional
from habilis.tools.tool import AnyTool
from habilis.tools.tool_names import check_name
from habilis.tools.toolset import Toolset

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client

MAX_SAID = 100_000
"""Maximum number of characters that a server says of a tool."""

MAX_LISTED = 1000
"""Maximum number of resources or prompts that code is shown."""


@dataclass(frozen=True, kw_only=True)
class RemoteTool:
    """A tool as its server describes it, with the type hints that follow from it."""

    remote: str
    """Its name there."""

    description: str
    signature: inspect.Signature
    properties: Mapping[str, str]
    """The names of arguments there, by parameter."""

    nullable: frozenset[str]
    """Parameters for which None is sent. For others it means that they are left out."""

    options: ToolOptions
    is_structured: bool
    unwraps: bool
    """Whether the server wraps a result that is no object as `{'result': …}`, as SDKs do."""

    said: str
    """Fingerprint of what the server says of it."""

    def arguments(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, Any]:
        """What is sent to the server."""
        given = self.signature.bind(*args, **kwargs)
        sent: dict[str, Any] = {}
        for name, value in given.arguments.items():
            if self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                sent |= value
            elif value is not None or name in self.nullable:
                sent[self.properties[name]] = value
        return sent


@dataclass(kw_only=True)
class Listing:
    """What a server offers, as far as it can be used."""

    server: str
    address: str
    tools: 'Sequence[mcp_types.Tool]'
    only: Collection[str] | None
    rename: Mapping[str, str]
    prefix: str
    has_resources: bool
    has_prompts: bool
    usable: list[RemoteTool] = field(default_factory=list[RemoteTool])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Tools that cannot be used, with the reason."""

    def __post_init__(self) -> None:
        known = {tool.name for tool in self.tools}
        for name in (*(self.only or ()), *self.rename):
            if name not in known:
                near = ''.join(f'; did you mean {one}?' for one in similar_names(name, known, n=1))
                msg = f'the MCP server {self.server} has no tool {name!r}{near}'
                raise ToolDefinitionError(msg)
        classes: dict[object, object] = {}
        for tool in self.tools:
            if self.only is not None and tool.name not in self.only:
                continue
            try:
                self.usable.append(read_tool(tool, classes))
            except (SchemaRefused, RecursionError) as error:
                self.refused[clean_line(tool.name, 100)] = str(error)
        self.states: Mapping[str, State] = KnownTools(self.address).states(
            {one.remote: one.said for one in self.usable}
        )

    def named(self, taken: Collection[str]) -> dict[str, RemoteTool]:
        """The tools by the names that code has for them. One that is taken or reserved is put after the server's."""
        found: dict[str, RemoteTool] = {}
        for tool in self.usable:
            own = self.rename.get(tool.remote) or identifier(f'{self.prefix}{tool.remote}')
            names = (own, f'{identifier(self.server)}_{own}')
            name = next((one for one in names if one not in taken and one not in found and _is_valid(one)), None)
            if name is None:
                self.refused[clean_line(tool.remote, 100)] = f'{own} cannot be the name of a tool here: rename it'
            else:
                found[name] = tool
        return found


def _is_valid(name: str) -> bool:
    try:
        check_name(name)
    except ToolDefinitionError:
        return False
    return True


def read_tool(tool: 'mcp_types.Tool', classes: dict[object, object]) -> RemoteTool:
    """A tool with type hints of its schemas. Raises `SchemaRefused`."""
    said = json.dumps([tool.name, tool.description, tool.input_schema, tool.output_schema], sort_keys=True)
    if len(said) > MAX_SAID:
        msg = f'its description and schemas are larger than {MAX_SAID:,} characters'
        raise SchemaRefused(msg)
    types = SchemaTypes(tool.input_schema, classes)
    properties, required, takes_more = types.properties()
    parameters: list[inspect.Parameter] = []
    names: dict[str, str] = {}
    nullable: set[str] = set()
    for key in sorted(properties, key=lambda key: key not in required):
        schema = properties[key]
        name = identifier(key, names)
        names[name] = key
        hint, default = types.hint(schema, key), inspect.Parameter.empty
        if types.accepts_null(schema):
            nullable.add(name)
        if key not in required:
            default = schema.get('default')
            hint = hint if default is not None or name in nullable else optional(hint)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=hint))
    if takes_more:
        kind = inspect.Parameter.VAR_KEYWORD
        parameters.append(inspect.Parameter(identifier('more', names), kind, annotation=Any))
    return RemoteTool(
        remote=tool.name,
        description=clean(tool.description),
        signature=inspect.Signature(parameters, return_annotation=_result_hint(tool, classes)),
        properties=names,
        nullable=frozenset(nullable),
        options=_options(tool),
        is_structured=tool.output_schema is not None,
        unwraps=_is_wrapped(tool.output_schema),
        said=fingerprint(said),
    )


def _result_hint(tool: 'mcp_types.Tool', classes: dict[object, object]) -> object:
    """Text, or what the server declares. A result that cannot be shown may be anything: it is only read."""
    if tool.output_schema is None:
        return str
    try:
        whole = tool.output_schema
        shown = whole['properties']['result'] if _is_wrapped(whole) else whole
        return SchemaTypes(whole, classes).hint(shown, f'{tool.name}_result')
    except SchemaRefused:
        return Any


def _is_wrapped(schema: 'dict[str, Any] | None') -> bool:
    properties = (schema or {}).get('properties')
    return is_dict(properties) and [*properties] == ['result']


def _options(tool: 'mcp_types.Tool') -> ToolOptions:
    """The hints of the server; what it leaves open is as MCP says: it may change things, and not twice the same."""
    hints = tool.annotations
    read_only = hints is not None and hints.read_only_hint is True
    return ToolOptions(
        read_only=read_only,
        destructive=not read_only and (hints is None or hints.destructive_hint is not False),
        idempotent=read_only or (hints is not None and hints.idempotent_hint is True),
        as_sync=True,
    )


class ServesTools(Protocol):
    """A server, as its tools need it."""

    name: str
    enabled: bool
    connection: ServerConnection

    @property
    def address(self) -> str: ...
    @property
    def listing(self) -> Listing: ...


class RemoteTools(Toolset):
    """The tools that a server has at one time."""

    def __init__(self, server: ServesTools, taken: frozenset[str]) -> None:
        self._server, self._taken, self._listing = server, taken, server.listing
        self._known = KnownTools(server.address)
        tools = [self._tool(name, remote) for name, remote in self._listing.named(taken).items()]
        readers = [
            *(self._resource_readers() if self._listing.has_resources else ()),
            *(self._prompt_readers() if self._listing.has_prompts else ()),
        ]
        tools += [one for one in readers if one.name not in taken]
        name = identifier(server.name, [tool.name for tool in tools])  # a toolset and a tool are no namesakes
        super().__init__(name, tools, server.enabled)

    @property
    def refused(self) -> Mapping[str, str]:
        """Tools that cannot be used, with the reason."""
        return self._listing.refused

    def newest(self) -> Toolset:
        """The tools that the server has now."""
        return self if self._server.listing is self._listing else RemoteTools(self._server, self._taken)

    def _tool(self, name: str, remote: RemoteTool) -> AnyTool:
        connection, server = self._server.connection, self._server.name
        state = self._listing.states[remote.remote]

        async def call(*args: object, **kwargs: object) -> object:
            nonlocal state
            if state != 'same':
                if state == 'new':
                    said = f'first use of {name} of the MCP server {server}: {remote.description or "no description"}'
                    emit(lambda call: NoticeEvent(call=call, message=said))
                self._known.remember(remote.remote, remote.said)
                state, made.options, made.approval_question = 'same', remote.options, ''
            result = await connection.request(_calling(remote.remote, remote.arguments(args, kwargs)))
            return value_of(result, is_structured=remote.is_structured, unwraps=remote.unwraps)

        call.__signature__ = remote.signature  # pyright: ignore[reportFunctionMemberAccess]
        options, asked = remote.options, ''
        if state == 'changed':
            question = f'{name} of the MCP server {server} is no longer what it was when you used it:'
            options = replace(options, needs_approval=True)
            asked = f'{question}\n{remote.description}\nMay it be called?'
        made = AnyTool(call, name=name, options=options, signature=remote.signature)
        made.approval_question = asked
        made.description = remote.description
        return made

    def _resource_readers(self) -> list[AnyTool]:
        request, name = self._server.connection.request, identifier(self._server.name)

        async def resources() -> list[dict[str, str]]:
            found = await request(lambda client, _: client.list_resources(cache_mode='refresh'))
            return [
                {'uri': str(one.uri), 'name': clean_line(one.name), 'description': clean_line(one.description)}
                for one in found.resources[:MAX_LISTED]
            ]

        async def read(uri: str) -> str:
            return text_of_resource(await request(lambda client, _: client.read_resource(uri, cache_mode='refresh')))

        described = f'The resources of the MCP server {name}: uri, name, description.'
        return [
            _reader(resources, f'{name}_resources', described),
            _reader(read, f'{name}_read_resource', f'The text of a resource of the MCP server {name}.'),
        ]

    def _prompt_readers(self) -> list[AnyTool]:
        request, name = self._server.connection.request, identifier(self._server.name)

        async def prompts() -> list[dict[str, Any]]:
            found = await request(lambda client, _: client.list_prompts(cache_mode='refresh'))
            return [
                {
                    'name': one.name,
                    'description': clean_line(one.description),
                    'arguments': [argument.name for argument in one.arguments or ()],
                }
                for one in found.prompts[:MAX_LISTED]
            ]

        async def prompt(name: str, arguments: dict[str, str] | None = None) -> str:
            return text_of_prompt(await request(lambda client, _: client.get_prompt(name, arguments)))

        return [
            _reader(prompts, f'{name}_prompts', f'The prompts of the MCP server {name}, and their arguments.'),
            _reader(prompt, f'{name}_prompt', f'A prompt of the MCP server {name}, filled in.'),
        ]


def _reader(function: Callable[..., object], name: str, description: str) -> AnyTool:
    made = AnyTool(function, name=name, options=ToolOptions(read_only=True, as_sync=True))
    made.description = description
    return made


def _calling(tool: str, arguments: dict[str, Any]) -> 'Callable[[Client, ActiveCall], Any]':
    async def send(client: 'Client', call: ActiveCall) -> 'mcp_types.CallToolResult':
        async def report(progress: float, total: float | None, message: str | None) -> None:
            if call.channel is not None:
                call.channel.report(progress, total, clean_line(message))

        return await client.call_tool(tool, arguments, progress_callback=report)

    return send
