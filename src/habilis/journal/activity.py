"""`Activity`: what this process does in a run: its tasks, its running steps, and where no new steps may start."""

import asyncio
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary, WeakSet

from habilis.core.codec import Json


@dataclass(slots=True)
class ScopeState:
    """What this process has done in a scope."""

    owner: 'asyncio.Task[object] | None' = None
    """The task whose steps are numbered here; other tasks get a branch."""

    names: dict[str, int] = field(default_factory=dict[str, int])
    """Number of steps so far, by name."""

    branches: 'WeakKeyDictionary[asyncio.Task[object], str] | None' = None
    """Branches of the live tasks. Created on demand, because most scopes have none."""

    cancelled: 'dict[str, str] | None' = None
    """Paths of cancelled steps, with their keys."""

    def next_number(self, name: str) -> int:
        """The number of the next step of this name."""
        number = self.names[name] = self.names.get(name, 0) + 1
        return number


class Activity:
    """The part of a journal that is about this process. None of it is recorded."""

    def __init__(self) -> None:
        self._scopes: dict[str, ScopeState] = {}
        self._unopened: dict[str, tuple[str, Json]] = {}
        """Key and value of the `opened` record of scopes. It is written with the first record inside them."""

        self._running: dict[str, bool] = {}
        """Paths of running steps, and whether they must not be started twice."""

        self._halted: set[str] = set()

        self._earlier: WeakSet[asyncio.Task[object]] = WeakSet()
        """Tasks that are older than the replay, so that they do not belong to it."""

    def start_replay(self) -> None:
        """From now on, tasks of the run may be created."""
        self._earlier = WeakSet(asyncio.all_tasks())

    def has_other_tasks(self) -> bool:
        """Whether another task of the run may be alive, which has not started its steps yet."""
        current = asyncio.current_task()
        return any(task is not current and task not in self._earlier for task in asyncio.all_tasks())

    def scope_state(self, path: str) -> ScopeState:
        """What was done in a scope."""
        state = self._scopes.get(path)
        if state is None:
            state = self._scopes[path] = ScopeState()
        return state

    def reset_scope(self, scope: str) -> None:
        """Forget what was done in a scope, because it starts again."""
        for path in [path for path in self._scopes if path == scope or path.startswith(f'{scope}/')]:
            del self._scopes[path]
        self._halted = {halted for halted in self._halted if not f'{halted}/'.startswith(f'{scope}/')}

    @property
    def running_steps(self) -> int:
        """Number of running steps."""
        return len(self._running)

    def start_step(self, path: str, *, once: bool = False, key: str = '', value: Json = None) -> None:
        """A step is running until `finish_step`."""
        self._running[path] = once
        self.set_scope_opening(path, key, value)

    def finish_step(self, path: str) -> None:
        """A step was recorded or abandoned."""
        self._running.pop(path, None)
        self._unopened.pop(path, None)

    def set_scope_opening(self, path: str, key: str, value: Json = None) -> None:
        """Set key and value of the `opened` record of a scope, written as soon as something is recorded inside."""
        if key:
            self._unopened[path] = key, value

    def step_cancelled(self, scope: str, path: str, key: str) -> None:
        """A step was cancelled. If the code continues after it, it is recorded as failed."""
        state = self.scope_state(scope)
        state.cancelled = {**(state.cancelled or {}), path: key}

    def has_running_steps(self, scope: str) -> bool:
        """Whether steps below a scope are running."""
        return any(path.startswith(f'{scope}/') for path in self._running)

    def halt(self, scope: str) -> None:
        """Start no new step below a scope, except inside a running step that must not be started twice."""
        self._halted.add(scope)

    def is_halted(self, path: str) -> bool:
        """Whether the step at this path must not start."""
        if not self._halted or not any(path.startswith(f'{scope}/') for scope in self._halted):
            return False
        return not any(once and path.startswith(f'{outer}/') for outer, once in self._running.items())

    def tasks_in(self, scope: str) -> 'list[asyncio.Task[object]]':
        """The live tasks that have run steps in or below a scope."""
        found: set[asyncio.Task[object]] = set()
        for path, state in self._scopes.items():
            if path == scope or path.startswith(f'{scope}/'):
                found.update(state.branches or ())
                found.update([state.owner] if state.owner is not None else [])
        return [task for task in found if not task.done()]
