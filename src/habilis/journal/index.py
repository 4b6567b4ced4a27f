"""`Index`: the records of a run by path, and which recorded steps were not replayed yet."""

from collections import deque
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

from habilis.core.narrowing import list_of
from habilis.journal.contract import Record

BRANCH = '~'
"""The prefix of the name of a parallel branch."""


@dataclass(slots=True)
class PathRecords:
    """The records of one path that count."""

    end: Record | None = None
    """The `done` or `failed` record."""

    opened: Record | None = None
    started: Record | None = None
    asked: Record | None = None
    answered: Record | None = None
    retried: bool = False
    """It has failed before, and is retried."""

    @property
    def key(self) -> str | None:
        """The digest of its input; None if there is no record of it."""
        for record in (self.end, self.started, self.opened, self.asked):
            if record is not None:
                return record.key
        return None

    @property
    def first(self) -> int | None:
        """The number of its first record."""
        records = (self.opened, self.started, self.asked, self.answered, self.end)
        return min((record.seq for record in records if record is not None), default=None)


_FIELDS = {
    'done': 'end',
    'failed': 'end',
    'opened': 'opened',
    'started': 'started',
    'asked': 'asked',
    'answered': 'answered',
}


@dataclass(slots=True)
class _Unreplayed:
    """Recorded paths directly in a scope that were not replayed yet, in the order of their first records."""

    steps: dict[str, None] = field(default_factory=dict[str, None])
    calls: dict[str, None] = field(default_factory=dict[str, None])
    branches: dict[str, None] = field(default_factory=dict[str, None])

    def group_of(self, name: str) -> dict[str, None]:
        """The group that this name belongs to: steps have a fixed order; branches and calls come in any order."""
        if name.startswith(BRANCH):
            return self.branches
        return self.calls if '(' in name else self.steps


def parent_of(path: str) -> str:
    """The scope of a path; empty for the run itself."""
    return path.rpartition('/')[0]


def name_of(path: str) -> str:
    """The last name of a path, without its number."""
    return path.rpartition('/')[2].rpartition('#')[0]


def is_in_order(path: str) -> bool:
    """Whether a path has a fixed place in the order of its scope: branches and calls do not."""
    name = path.rpartition('/')[2]
    return not name.startswith(BRANCH) and '(' not in name


class Index:
    """The entries of a run by path, and what of it was not replayed yet."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._entries: dict[str, PathRecords] = {}
        self._unreplayed: dict[str, _Unreplayed] = {}
        self._highest: dict[str, int] = {}
        """The highest branch number by scope. Numbers are never reused, even after a branch was dropped."""

        self._first_steps: dict[str, dict[tuple[str, str | None], deque[str]]] = {}
        """A cache by scope: its branches by the name and the key of their first step."""

        self._optional: set[str] = set()
        for record in records:
            if record.kind in _FIELDS and record.path not in self._entries:
                self._register(record.path)
            self.add(record)

    def find(self, path: str) -> PathRecords | None:
        """The entry of a path."""
        return self._entries.get(path)

    def replay_ended(self, path: str, key: str) -> PathRecords | None:
        """The entry of a step that has ended with the same key; it counts as replayed from now on."""
        entry = self._entries.get(path)
        if entry is None or entry.end is None or entry.end.key != key:
            return None
        self.mark_replayed(path)
        return entry

    def add(self, record: Record) -> None:
        """Add a record."""
        kind = _FIELDS.get(record.kind)
        if kind is not None:
            entry = self._entries.get(record.path)
            if entry is None:
                entry = self._entries[record.path] = PathRecords()
            setattr(entry, kind, record)
        elif record.kind == 'voided':
            self._void(list_of(str, record.value))

    def _register(self, path: str, *, within: str = '') -> None:
        """Add a path and the scopes around it to those that were not replayed yet."""
        while path != within:
            scope, _, name = path.rpartition('/')
            left = self._unreplayed.get(scope)
            if left is None:
                left = self._unreplayed[scope] = _Unreplayed()
            same = left.group_of(name)
            if path in same:
                return
            same[path] = None
            if same is left.branches and name[1:].isdecimal():
                self.count_branch(scope, int(name[1:]))
            path = scope

    # Voided paths -----------------------------------------------------------------------------------------------------

    def _void(self, paths: Iterable[str]) -> None:
        """Drop paths that end with `/` with everything inside. For other paths, only their failure no longer counts."""
        dropped = {path[:-1] for path in paths if path.endswith('/')}
        failures: dict[str, int] = {}
        for path in paths:
            entry = None if path.endswith('/') else self._entries.get(path)
            if entry is not None and entry.end is not None and entry.end.kind == 'failed':
                scope = parent_of(path)
                failures[scope] = min(failures.get(scope, entry.end.seq), entry.end.seq)
                entry.end, entry.retried = None, True
        for path in self._after(failures) if failures else ():
            if is_in_order(path):
                dropped.add(path)
            else:  # it may have been caused by the failure, or have run at the same time
                self._optional.add(path)
        if dropped:
            self._drop(dropped)
        self._first_steps.clear()

    def _after(self, failures: dict[str, int]) -> Iterator[str]:
        """Paths in the same scope after a failure that no longer counts: the code that handled it."""
        firsts: dict[str, int] = {}
        for known, entry in self._entries.items():
            path, first = known, entry.first
            while path and first is not None:
                scope = parent_of(path)
                if scope in failures:
                    firsts[path] = min(firsts.get(path, first), first)
                path = scope
        return (path for path, first in firsts.items() if first > failures[parent_of(path)])

    def _drop(self, dropped: Set[str]) -> None:
        for known in [known for known in self._entries if _is_within(known, dropped)]:
            del self._entries[known]
        for scope in [scope for scope in self._unreplayed if _is_within(scope, dropped)]:
            del self._unreplayed[scope]
        for path in dropped:
            self.mark_replayed(path)

    def rewind(self, scope: str) -> None:
        """Everything recorded below a scope is to be replayed again."""
        for path, entry in list(self.inside(scope)):
            if entry.first is not None:
                self._register(path, within=scope)
        self._first_steps.clear()

    # Unreplayed paths -------------------------------------------------------------------------------------------------

    def mark_replayed(self, path: str) -> None:
        """The path was replayed."""
        scope, _, name = path.rpartition('/')
        left = self._unreplayed.get(scope)
        if left is not None:
            left.group_of(name).pop(path, None)

    def unreplayed_steps(self, scope: str) -> list[str]:
        """The recorded steps of this scope, in their order, that were not replayed yet."""
        left = self._unreplayed.get(scope)
        return list(left.steps) if left is not None else []

    def unreplayed_calls(self, scope: str, name: str) -> list[str]:
        """The recorded calls of this name that were not replayed yet."""
        left = self._unreplayed.get(scope)
        return [path for path in left.calls if name_of(path).startswith(f'{name}(')] if left is not None else []

    def unreplayed_branches(self, scope: str) -> list[str]:
        """The recorded branches of this scope that must be replayed, and were not yet."""
        left = self._unreplayed.get(scope)
        return [path for path in left.branches if path not in self._optional] if left is not None else []

    def has_unreplayed(self, scope: str) -> bool:
        """Whether recorded steps or branches of this scope were not replayed yet."""
        left = self._unreplayed.get(scope)
        return left is not None and bool(left.steps or left.branches)

    def first_unreplayed(self, scope: str) -> str | None:
        """The first step of a scope that was not replayed yet."""
        left = self._unreplayed.get(scope)
        return next(iter(left.steps), None) if left is not None else None

    def inside(self, scope: str) -> Iterator[tuple[str, PathRecords]]:
        """The paths below a scope, with their entries."""
        prefix = f'{scope}/' if scope else ''
        for path, entry in self._entries.items():
            if path.startswith(prefix):
                yield path, entry

    # Branches ---------------------------------------------------------------------------------------------------------

    def find_branch(self, scope: str, name: str, key: str) -> str | None:
        """A branch that was not replayed yet and starts with this step, preferably with the same key."""
        left = self._unreplayed.get(scope)
        if left is None or not left.branches:
            return None
        first_steps = self._first_steps.get(scope)
        if first_steps is None:
            first_steps = self._first_steps[scope] = self._find_first_steps(left.branches)
        for known in (key, None):
            branches = first_steps.get((name, known))
            while branches:
                branch = branches.popleft()
                if branch in left.branches:
                    return branch
        return None

    def _find_first_steps(self, branches: Iterable[str]) -> dict[tuple[str, str | None], deque[str]]:
        first_steps: dict[tuple[str, str | None], deque[str]] = {}
        for branch in branches:
            first = self.first_unreplayed(branch)
            if first is not None:
                entry = self._entries.get(first)
                key = None if entry is None else entry.key
                first_steps.setdefault((name_of(first), key), deque()).append(branch)
        return first_steps

    @property
    def was_loaded(self) -> bool:
        """Whether anything was recorded before, so that it may have to be replayed."""
        return bool(self._unreplayed)

    @property
    def has_branches(self) -> bool:
        """Whether there is a branch in any scope."""
        return bool(self._highest)

    def new_branch(self, scope: str) -> str:
        """The path of a new branch."""
        number = self._highest[scope] = self._highest.get(scope, 0) + 1
        return f'{scope}/{BRANCH}{number}' if scope else f'{BRANCH}{number}'

    def count_branch(self, scope: str, number: int) -> None:
        """Take note of a branch number, so that it is not reused."""
        self._highest[scope] = max(self._highest.get(scope, 0), number)


def _is_within(path: str, scopes: Set[str]) -> bool:
    """Whether a path is one of these scopes, or below one."""
    while path not in scopes:
        if not path:
            return False
        path = parent_of(path)
    return True
