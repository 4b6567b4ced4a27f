"""All sandboxes by owner: quotas, and expiry of unused ones."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol, TypeVar

from habilis.server.settings import ServiceSettings

SWEEP_SECONDS = 1.0
RETRY_SECONDS = 5
"""What callers are told to wait if they have too many sandboxes."""


class TooMany(Exception):
    """The caller has too many sandboxes or requests. `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Hosted(Protocol):
    """A sandbox of the service: a whole one, a guest whose session is on the client, or a machine of E2B's protocol."""

    kind: str
    created: float

    @property
    def busy(self) -> bool:
        """Whether it works on a request."""
        ...

    def is_expired(self, now: float) -> bool:
        """Whether it is to be closed."""
        ...

    async def close(self) -> None:
        """Free its resources."""
        ...


H = TypeVar('H', bound=Hosted)


class SandboxRegistry:
    """All sandboxes. An id is secret enough, and works for its owner only."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._hosted: dict[str, tuple[str, Hosted]] = {}
        self._starting: dict[str, int] = {}
        self._is_closed = False

    async def start(self, owner: str, make: Callable[[], Awaitable[H]]) -> tuple[str, H]:
        """Make a sandbox within the quota. Returns its id, too."""
        mine = sum(1 for name, _ in self._hosted.values() if name == owner) + self._starting.get(owner, 0)
        total = len(self._hosted) + sum(self._starting.values())
        if mine >= self._settings.sandboxes_per_key or total >= self._settings.sandboxes:
            msg = f'there are too many sandboxes ({mine} of this key); delete one, or wait'
            raise TooMany(msg, RETRY_SECONDS)
        self._starting[owner] = self._starting.get(owner, 0) + 1
        try:
            made = await make()
        finally:
            self._starting[owner] -= 1
            if not self._starting[owner]:
                del self._starting[owner]
        if self._is_closed:  # while it started, and all others were closed
            await made.close()
            msg = 'the server stops'
            raise TooMany(msg, RETRY_SECONDS)
        name = secrets.token_urlsafe(16)
        self._hosted[name] = owner, made
        return name, made

    def find(self, owner: str, name: str) -> Hosted | None:
        """The sandbox with this id; None if there is none, or it belongs to somebody else."""
        found = self._hosted.get(name)
        return found[1] if found is not None and found[0] == owner else None

    def get(self, name: str) -> Hosted | None:
        """The sandbox with this id, whoever it belongs to; for callers who have another proof than a key."""
        return self._hosted[name][1] if name in self._hosted else None

    def of(self, owner: str) -> Iterator[tuple[str, Hosted]]:
        """All sandboxes of a caller."""
        return ((name, hosted) for name, (theirs, hosted) in list(self._hosted.items()) if theirs == owner)

    async def remove(self, name: str) -> None:
        """Close a sandbox and forget it."""
        found = self._hosted.pop(name, None)
        if found is not None:
            await found[1].close()

    async def sweep(self) -> None:
        """Close what has expired, until it is cancelled; then close all."""
        try:
            while True:
                await asyncio.sleep(SWEEP_SECONDS)
                now = time.monotonic()
                for name in [name for name, (_, hosted) in self._hosted.items() if hosted.is_expired(now)]:
                    await self.remove(name)
        finally:
            self._is_closed = True
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*(self.remove(name) for name in list(self._hosted)), return_exceptions=True)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._hosted)
