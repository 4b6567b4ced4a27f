"""The official client for the tests, and what it gets."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent


@contextlib.asynccontextmanager
async def over_http(
    address: str, mode: str = 'legacy', headers: dict[str, str] | None = None
) -> AsyncGenerator[Client]:
    """A client of a server at this address."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=300) as http,
        Client(streamable_http_client(f'{address}/mcp', http_client=http), mode=mode) as client,
    ):
        yield client


async def run(client: Client, code: str, **more: Any) -> str:
    """What the tool `python` answers, as text."""
    return text_of(await client.call_tool('python', {'code': code, **more}))


def text_of(result: CallToolResult) -> str:
    """The text of an answer."""
    return '\n'.join(part.text for part in result.content if isinstance(part, TextContent))


def names(tools: Sequence[Any]) -> list[str]:
    """The names of tools."""
    return [tool.name for tool in tools]
