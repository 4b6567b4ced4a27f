"""Calls of a tool of an MCP server: with the SDK alone, and through the client of Habilis.

What is measured is the processor time of this process: the server's own, and what else the machine does, is left out.
"""

import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.measurement import Sample, interleave, summarize
from habilis.tools import McpServer, Toolbox

ROOT = Path(__file__).resolve().parents[2]
Call = Callable[[], Awaitable[object]]


async def call_times(rounds: int) -> list[Sample]:
    """Seconds of a call with the SDK alone, and through the client of Habilis; interleaved."""
    async with AsyncExitStack() as stack:
        calls = [await stack.enter_async_context(open_client()) for open_client in (_bare, _ours)]
        return await interleave(rounds, *(_timed(call) for call in calls))


async def listing_time(tools: int, rounds: int) -> Sample:
    """Seconds to list the tools of a server that runs, and to turn them into stubs, with the client of Habilis."""
    times: list[float] = []
    for _ in range(rounds):
        server = _server(tools)
        try:
            await server.connection.client()
            started = time.process_time()
            stubs = [tool.stub for tool in (await server.opened()).tools]
            times.append(time.process_time() - started)
        finally:
            await server.close()
        assert len(stubs) > tools
    return summarize(times)


def _timed(call: Call) -> Callable[[], Awaitable[float]]:
    async def measure() -> float:
        started = time.process_time()
        await call()
        return time.process_time() - started

    return measure


@asynccontextmanager
async def _bare() -> AsyncGenerator[Call]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = StdioServerParameters(command=sys.executable, args=['-m', 'benchmarks.mcp.server', '0'], cwd=ROOT)
    async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield lambda: session.call_tool('add', {'left': 2, 'right': 3})


@asynccontextmanager
async def _ours() -> AsyncGenerator[Call]:
    server = _server(0)
    try:
        toolbox = Toolbox([await server.opened()])
        yield lambda: toolbox.call('add', left=2, right=3)
    finally:
        await server.close()


def _server(tools: int) -> McpServer:
    return McpServer([sys.executable, '-m', 'benchmarks.mcp.server', str(tools)], cwd=ROOT, name='bench')
