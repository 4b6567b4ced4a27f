"""Processes that die after one of their operations on a store, acted out in this process."""

import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import pytest

from habilis.core import owners
from habilis.journal import Store
from habilis.journal.stores.wrapper import StoreWrapper

T = TypeVar('T')


class Died(BaseException):
    """The process is dead: nothing that it does from now on has an effect."""


@cache
def dead_owner() -> str:
    """The owner of leases in a process that has ended."""
    command = [sys.executable, '-c', 'from habilis.core.owners import new_owner; print(new_owner())']
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Dying(StoreWrapper):
    """A store whose user dies after so many operations."""

    def __init__(self, store: Store, operations: int) -> None:
        super().__init__(store)
        self.left = operations

    @property
    def is_dead(self) -> bool:
        return self.left < 0

    async def _do(self, operation: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self.left -= 1
        if self.is_dead:
            raise Died
        return await super()._do(operation, work)

    def for_another_loop(self) -> Store:
        return self

    async def close(self) -> None:
        """The test closes the store itself."""


@contextmanager
def dying(store: Store, operations: int) -> Generator[Dying]:
    """The store of a process that dies after so many operations. What is done in the block ends there."""
    owner = dead_owner()
    made = Dying(store, operations)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owners, 'new_owner', lambda: owner)
        try:
            yield made
        except Died:
            assert made.is_dead
