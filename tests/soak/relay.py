"""A socket in front of a server, whose connections can be cut."""

import asyncio
import contextlib
import random
from pathlib import Path


class Relay:
    """Passes bytes on between a socket of its own and that of a server. Both have the same name, in two folders."""

    def __init__(self, socket: Path, folder: Path) -> None:
        self.folder = folder
        self.cuts = 0
        self._target = socket
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], tuple[asyncio.StreamWriter, ...]] = {}

    async def start(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_unix_server(self._connected, self.folder / self._target.name)

    def cut(self, chance: random.Random) -> None:
        """End about half of the connections, in the middle of whatever they do."""
        for writers in list(self._connections.values()):
            if chance.random() < 0.5:
                self.cuts += 1
                for writer in writers:
                    writer.transport.abort()

    async def close(self) -> None:
        """End all connections."""
        assert self._server is not None
        self._server.close()
        for writers in self._connections.values():
            for writer in writers:
                writer.transport.abort()
        await asyncio.gather(*self._connections)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_unix_connection(self._target)
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = (writer, there_writer)
        ways = [
            asyncio.create_task(_pass_on(reader, there_writer)),
            asyncio.create_task(_pass_on(there_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._connections[task]
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for each in (writer, there_writer):
                each.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
