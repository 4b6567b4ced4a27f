"""Leaves out the tools of a server that the SDK does not accept: it refuses a whole listing for one of them."""

import contextlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from habilis.core.narrowing import is_dict, is_list
from habilis.tools.mcp.descriptions import clean_line

if TYPE_CHECKING:
    from types import TracebackType

    from mcp import Client
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage
    from mcp_types import ListToolsResult


@dataclass
class InvalidTools:
    """Those of one connection. Checking each tool takes longer than all at once, so it begins after a refusal."""

    version: str = ''
    """The version of the protocol by which tools are checked; empty as long as none was refused."""

    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Names, with what is wrong."""

    async def list_page(self, client: 'Client', cursor: str | None) -> 'ListToolsResult':
        """A page of the tools that are valid."""
        from pydantic import ValidationError

        try:
            return await client.list_tools(cursor=cursor, cache_mode='refresh')
        except ValidationError:
            if self.version:
                raise
        self.version = client.protocol_version
        return await client.list_tools(cursor=cursor, cache_mode='refresh')

    def remove(self, item: 'SessionMessage | Exception') -> None:
        """Remove them from a message, if it has tools."""
        result = getattr(getattr(item, 'message', None), 'result', None)
        if self.version and is_dict(result) and is_list(tools := result.get('tools')):
            result['tools'] = [tool for tool in tools if not self._is_refused(result, tool)]

    def _is_refused(self, result: dict[object, object], tool: object) -> bool:
        from mcp_types import ListToolsResult
        from mcp_types.methods import validate_server_result
        from pydantic import ValidationError

        alone = {**{str(key): value for key, value in result.items()}, 'tools': [tool]}
        try:
            validate_server_result('tools/list', self.version, alone)
            ListToolsResult.model_validate(alone, by_name=False)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = '.'.join(str(part) for part in first['loc'][2:])
            name = tool.get('name') if is_dict(tool) else None
            self.refused[clean_line(str(name), 100)] = clean_line(f'{where}: {first["msg"]}')
            return True
        return False


@contextlib.asynccontextmanager
async def without_invalid_tools(
    transport: 'AbstractAsyncContextManager[TransportStreams]', invalid: InvalidTools
) -> 'AsyncGenerator[TransportStreams]':
    """The transport; messages with tools have only the valid ones."""
    async with transport as (read, write):
        yield _ValidMessages(read, invalid), write


class _ValidMessages:
    def __init__(self, read: 'ReadStream[SessionMessage | Exception]', invalid: InvalidTools) -> None:
        self._read, self._invalid = read, invalid

    @property
    def last_context(self) -> object:
        """The SDK asks for it."""
        return getattr(self._read, 'last_context', None)

    async def receive(self) -> 'SessionMessage | Exception':
        item = await self._read.receive()
        self._invalid.remove(item)
        return item

    async def aclose(self) -> None:
        await self._read.aclose()

    def __aiter__(self) -> '_ValidMessages':
        return self

    async def __anext__(self) -> 'SessionMessage | Exception':
        item = await self._read.__anext__()
        self._invalid.remove(item)
        return item

    async def __aenter__(self) -> '_ValidMessages':
        await self._read.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: 'TracebackType | None',
    ) -> bool | None:
        return await self._read.__aexit__(exc_type, exc_val, exc_tb)
