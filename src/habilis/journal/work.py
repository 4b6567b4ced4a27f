"""What this process does in a run: in which task, which steps are under way, and where no more may begin."""

import asyncio
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary


@dataclass(slots=True)
class Place:
    """What this process has done in a scope."""

    owner: 'asyncio.Task[Any] | None' = None
    """The task whose steps are counted here; others get a branch."""

    names: dict[str, int] = field(default_factory=dict[str, int])
    branches: 'WeakKeyDictionary[asyncio.Task[Any], str] | None' = None
    """Of the tasks that live. Made when there is one: most scopes have none."""

    cut: 'dict[str, str] | None' = None
    """Steps that were cancelled, with their keys."""

    def count(self, name: str) -> int:
        """The number of the next step of this name."""
        number = self.names[name] = self.names.get(name, 0) + 1
        return number


class Work:
    """The part of a journal that is about this process. Nothing of it is recorded."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._unopened: dict[str, str] = {}
        """Keys of scopes that have no record yet. One is written with the first record inside, to find them by."""

        self._under_way: dict[str, bool] = {}
        """Steps under way, and whether they must not be begun again."""

        self._halted: set[str] = set()

    def place(self, path: str) -> Place:
        """What was done in a scope."""
        place = self._places.get(path)
        if place is None:
            place = self._places[path] = Place()
        return place

    def forget(self, scope: str) -> None:
        """A scope is begun again."""
        for path in [path for path in self._places if path == scope or path.startswith(f'{scope}/')]:
            del self._places[path]
        self._halted = {halted for halted in self._halted if not f'{halted}/'.startswith(f'{scope}/')}

    @property
    def working(self) -> int:
        """How many steps are under way."""
        return len(self._under_way)

    def begun(self, path: str, *, once: bool = False, key: str = '') -> None:
        """A step is being done and written down, until it is `over`."""
        self._under_way[path] = once
        self.keyed(path, key)

    def over(self, path: str) -> None:
        """A step was written down, or given up."""
        self._under_way.pop(path, None)
        self._unopened.pop(path, None)

    def keyed(self, path: str, key: str) -> None:
        """What a scope is found by. It is written down when something is recorded inside."""
        if key:
            self._unopened[path] = key

    def cut_off(self, scope: str, path: str, key: str) -> None:
        """A step of this scope was cancelled. If the code goes on nevertheless, that is what came of it."""
        place = self.place(scope)
        place.cut = {**(place.cut or {}), path: key}

    def works_in(self, scope: str) -> bool:
        """Whether steps below a scope are under way."""
        return any(path.startswith(f'{scope}/') for path in self._under_way)

    def halt(self, scope: str) -> None:
        """From now on no new step begins below a scope, unless it is part of one that must not be begun again."""
        self._halted.add(scope)

    def is_halted(self, path: str) -> bool:
        """Whether this step may not begin any more."""
        if not self._halted or not any(path.startswith(f'{scope}/') for scope in self._halted):
            return False
        return not any(once and path.startswith(f'{around}/') for around, once in self._under_way.items())

    def tasks_in(self, scope: str) -> 'list[asyncio.Task[Any]]':
        """The tasks that have taken steps below a scope, and have not ended."""
        found: set[asyncio.Task[Any]] = set()
        for path, place in self._places.items():
            if path == scope or path.startswith(f'{scope}/'):
                found.update(place.branches or ())
                found.update([place.owner] if place.owner is not None else [])
        return [task for task in found if not task.done()]
