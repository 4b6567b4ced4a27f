"""Messages of an MCP server over HTTP. Its answers are neither too long, nor compressed into something that is."""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from habilis.core.errors import ToolServerError
from habilis.tools.mcp.transports import MAX_MESSAGE, TOO_LONG

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


@contextlib.asynccontextmanager
async def open_http(
    url: str, *, headers: Mapping[str, str], auth: httpx2.Auth | None, sse: bool
) -> 'AsyncGenerator[TransportStreams]':
    """Connect to a server over streamable HTTP, or over the older SSE."""
    if sse:
        async with sse_client(url, headers=dict(headers), auth=auth, httpx_client_factory=_client) as streams:
            yield streams
        return
    async with (
        _client(dict(headers), httpx2.Timeout(30, read=300), auth) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


def _client(
    headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    plain = {**(headers or {}), 'accept-encoding': 'identity'}
    return httpx2.AsyncClient(headers=plain, timeout=timeout, auth=auth, event_hooks={'response': [_bound]})


async def _bound(response: httpx2.Response) -> None:
    if response.headers.get('content-encoding', 'identity') != 'identity':  # a small body may become a huge one
        msg = 'it compresses its answers, though it is asked not to'
        raise ToolServerError(msg)
    is_stream = 'text/event-stream' in response.headers.get('content-type', '')  # the SDK bounds each event
    if not is_stream and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _BoundedBody(response.stream)


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that ends with an error where it is too long, whatever its headers say."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size = 0
        async for chunk in self._body:
            size += len(chunk)
            if size > MAX_MESSAGE:
                raise ToolServerError(TOO_LONG)
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()
