"""Commands of a machine, as the host sees them: output goes to those who follow a command, and to nobody else."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Stream = Literal['stdout', 'stderr', 'lines']


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of a command."""

    status: int
    """Its exit code; negative for a signal."""


@dataclass
class _Chunk:
    stream: Stream
    data: bytes
    left: int
    """How many followers have not taken it yet."""


class Follower:
    """Follows the output of a command from now on. The command waits for its slowest follower."""

    def __init__(self, command: 'Command') -> None:
        self.command = command
        self._queue: asyncio.Queue[_Chunk | Ended] = asyncio.Queue()

    async def next(self) -> tuple[Stream, bytes] | Ended:
        """The next output, or the end."""
        item = await self._queue.get()
        if isinstance(item, Ended):
            self._queue.put_nowait(item)  # for those who ask again
            return item
        self.command.taken(item)
        return item.stream, item.data

    def put(self, item: _Chunk | Ended) -> None:
        """Called by the command."""
        self._queue.put_nowait(item)

    def close(self) -> None:
        """Follow it no longer."""
        if self in self.command.followers:
            self.command.followers.remove(self)
            while not self._queue.empty():
                item = self._queue.get_nowait()
                if isinstance(item, _Chunk):
                    self.command.taken(item)


@dataclass(eq=False)
class Command:
    """A command that runs."""

    name: int
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    tag: str
    acknowledge: Callable[[int, int], None]
    """Called with its name and the bytes that were read."""

    pid: int = 0
    followers: list[Follower] = field(default_factory=list[Follower])
    unread: int = 0

    def follow(self) -> Follower:
        """Get its output from now on."""
        follower = Follower(self)
        self.followers.append(follower)
        return follower

    def put(self, stream: Stream, data: bytes) -> None:
        """Pass output on."""
        chunk = _Chunk(stream, data, len(self.followers))
        self.unread += len(data)
        for follower in self.followers:
            follower.put(chunk)
        if not self.followers:
            self._read(chunk)

    def end(self, status: int) -> None:
        """Tell all followers that it has ended."""
        for follower in self.followers:
            follower.put(Ended(status=status))

    def taken(self, chunk: _Chunk) -> None:
        """Called when a follower has taken a chunk."""
        chunk.left -= 1
        if chunk.left == 0:
            self._read(chunk)

    def _read(self, chunk: _Chunk) -> None:
        self.unread -= len(chunk.data)
        self.acknowledge(self.name, len(chunk.data))
