"""Clients that read streams: `python -m benchmarks.server.clients PORT PATH…` says when all are open, and reads on."""

import asyncio
import sys


async def _read(port: int, path: str, opened: asyncio.Event) -> None:
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    writer.write(f'GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n'.encode())
    await reader.readuntil(b'event: ')
    opened.set()
    while await reader.read(1 << 16):
        pass


async def _main(port: int, paths: list[str]) -> None:
    all_opened = [asyncio.Event() for _ in paths]
    async with asyncio.TaskGroup() as group:
        for path, opened in zip(paths, all_opened, strict=True):
            group.create_task(_read(port, path, opened))
        for opened in all_opened:
            await opened.wait()
        print('open', flush=True)


if __name__ == '__main__':
    asyncio.run(_main(int(sys.argv[1]), sys.argv[2:]))
