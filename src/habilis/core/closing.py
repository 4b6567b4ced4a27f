"""Objects that are closed: as context managers, with and without `await`, or with their owner."""

import sqlite3
import weakref
from abc import ABC, abstractmethod
from typing import Self

from habilis.core.background_loop import run_blocking


class Closing(ABC):
    """Has `close`; the rest follows from it."""

    @abstractmethod
    async def close(self) -> None:
        """Free what it holds. Idempotent."""

    def close_sync(self) -> None:
        """`close` without `await`."""
        run_blocking(self.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close_sync()


def close_with(owner: object, connection: sqlite3.Connection) -> None:
    """Close a connection whose owner is collected without being closed: from 3.13 on, Python would warn of it."""
    weakref.finalize(owner, connection.close).atexit = False
