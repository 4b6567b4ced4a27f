"""MCP over stdin and stdout. Whatever else this process prints goes to stderr, and its children get neither."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from habilis.server.mcp.protocol import McpService

READ_BYTES = 1 << 16


class Wire:
    """The descriptors of the client, taken before anybody can print to them."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._incoming, self._outgoing = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(1)

    async def serve(self, server: 'McpService', max_line: int) -> None:
        """Serve the client until it closes stdin."""
        from mcp.server.stdio import stdio_server

        loop = asyncio.get_running_loop()
        # A thread that nobody waits for: reading cannot be interrupted, and Ctrl-C must end the process.
        threading.Thread(target=self._read, args=(loop, max_line), daemon=True).start()
        streams = cast('Any', _Input(self._lines)), cast('Any', _Output(self._outgoing))
        async with stdio_server(*streams) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    def _read(self, loop: asyncio.AbstractEventLoop, max_line: int) -> None:
        rest = b''
        with contextlib.suppress(RuntimeError, asyncio.CancelledError):  # the loop is closed: nobody reads on
            while data := os.read(self._incoming, READ_BYTES):
                *lines, rest = (rest + data).split(b'\n')
                for line in lines:
                    self._put(loop, line.decode('utf-8', 'replace'))
                if len(rest) > max_line:
                    print(f'habilis: a message is longer than {max_line:,} bytes; stopping', file=sys.stderr)
                    break
            self._put(loop, None)

    def _put(self, loop: asyncio.AbstractEventLoop, line: str | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), loop).result()


class _Input:
    """The lines as the SDK reads them."""

    def __init__(self, lines: asyncio.Queue[str | None]) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncGenerator[str]:
        while (line := await self._lines.get()) is not None:
            if line.strip():
                yield line


class _Output:
    """The stream that the SDK writes to. A client that is gone is no error: the end of stdin follows."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def write(self, text: str) -> None:
        await asyncio.to_thread(self._write, text.encode())

    async def flush(self) -> None:
        pass

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._descriptor, data) :]
