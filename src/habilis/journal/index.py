"""The records of a run by their paths: what is known of each step, and which recorded steps were not asked for yet."""

from collections import deque
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import cast

from habilis.journal.contract import Record

BRANCH = '~'
"""Begins the name of a parallel branch."""


@dataclass(slots=True)
class Entry:
    """What the records say of one path."""

    end: Record | None = None
    """`done` or `failed`."""

    opened: Record | None = None
    started: Record | None = None
    asked: Record | None = None
    answered: Record | None = None
    retried: bool = False
    """It has failed before, and is to be tried again."""

    @property
    def key(self) -> str | None:
        """The digest of what went in; None if no record says."""
        for record in (self.end, self.started, self.opened, self.asked):
            if record is not None:
                return record.key
        return None

    @property
    def first(self) -> int | None:
        """The number of the first record that counts."""
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
class _Left:
    """What was recorded directly in a scope and not asked for yet, in the order of the first records."""

    steps: dict[str, None] = field(default_factory=dict[str, None])
    calls: dict[str, None] = field(default_factory=dict[str, None])
    branches: dict[str, None] = field(default_factory=dict[str, None])

    def like(self, name: str) -> dict[str, None]:
        """Those of the same sort as this name: branches and calls come in any order, steps follow one another."""
        if name.startswith(BRANCH):
            return self.branches
        return self.calls if '(' in name else self.steps


def parent_of(path: str) -> str:
    """The scope that a path is in; empty for the run itself."""
    return path.rpartition('/')[0]


def name_of(path: str) -> str:
    """The last part of a path without its number."""
    return path.rpartition('/')[2].rpartition('#')[0]


def is_in_order(path: str) -> bool:
    """Whether it follows the one before it: neither a branch nor a call, which come in any order."""
    name = path.rpartition('/')[2]
    return not name.startswith(BRANCH) and '(' not in name


class Index:
    """All that was recorded, and what of it is left to be asked for."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._entries: dict[str, Entry] = {}
        self._left: dict[str, _Left] = {}
        self._highest: dict[str, int] = {}
        """By scope: the highest number of a branch. Numbers are not used again, also after their branch was dropped."""

        self._beginnings: dict[str, dict[tuple[str, str | None], deque[str]]] = {}
        """By scope, made when first asked for: its branches by the name and the key of their first step."""

        self._excused: set[str] = set()
        for record in records:
            self.add(record)
            if record.kind in _FIELDS:
                self._register(record.path)

    def find(self, path: str) -> Entry | None:
        """What is known of a path."""
        return self._entries.get(path)

    def ended(self, path: str, key: str) -> Entry | None:
        """A step that has ended and was given the same. It was asked for with this."""
        entry = self._entries.get(path)
        if entry is None or entry.end is None or entry.end.key != key:
            return None
        self.take(path)
        return entry

    def add(self, record: Record) -> None:
        """Take one more record into account."""
        kind = _FIELDS.get(record.kind)
        if kind is not None:
            entry = self._entries.get(record.path)
            if entry is None:
                entry = self._entries[record.path] = Entry()
            setattr(entry, kind, record)
        elif record.kind == 'voided':
            self._void(cast('list[str]', record.value))

    def _register(self, path: str, *, within: str = '') -> None:
        """A step and the scopes around it are to be asked for."""
        while path != within:
            scope, _, name = path.rpartition('/')
            left = self._left.get(scope)
            if left is None:
                left = self._left[scope] = _Left()
            same = left.like(name)
            if path in same:
                return
            same[path] = None
            if same is left.branches and name[1:].isdecimal():
                self.count_branch(scope, int(name[1:]))
            path = scope

    # What no longer counts --------------------------------------------------------------------------------------------

    def _void(self, paths: Iterable[str]) -> None:
        """A path that ends with `/` is dropped with all inside. Of another only that it failed no longer counts."""
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
            else:  # perhaps it came of the failure, perhaps it ran beside it
                self._excused.add(path)
        if dropped:
            self._drop(dropped)
        self._beginnings.clear()

    def _after(self, failures: dict[str, int]) -> Iterator[str]:
        """What came in the same scope after a failure that no longer counts: the code that handled it."""
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
        for scope in [scope for scope in self._left if _is_within(scope, dropped)]:
            del self._left[scope]
        for path in dropped:
            self.take(path)

    def rewind(self, scope: str) -> None:
        """All that is recorded below a scope is to be asked for again."""
        for path, entry in list(self.inside(scope)):
            if entry.first is not None:
                self._register(path, within=scope)
        self._beginnings.clear()

    # What is left -----------------------------------------------------------------------------------------------------

    def take(self, path: str) -> None:
        """This one was asked for."""
        scope, _, name = path.rpartition('/')
        left = self._left.get(scope)
        if left is not None:
            left.like(name).pop(path, None)

    def left_in(self, scope: str) -> list[str]:
        """The recorded steps of this scope that follow one another, and were not asked for."""
        left = self._left.get(scope)
        return list(left.steps) if left is not None else []

    def calls_left_in(self, scope: str, name: str) -> list[str]:
        """The recorded calls of this name, found by what they were given, that were not asked for."""
        left = self._left.get(scope)
        return [path for path in left.calls if name_of(path).startswith(f'{name}(')] if left is not None else []

    def branches_in(self, scope: str) -> list[str]:
        """The recorded parallel branches of this scope that no task has taken, and that should be."""
        left = self._left.get(scope)
        return [path for path in left.branches if path not in self._excused] if left is not None else []

    def first_in(self, scope: str) -> str | None:
        """The first step of a scope that was not asked for."""
        left = self._left.get(scope)
        return next(iter(left.steps), None) if left is not None else None

    def inside(self, scope: str) -> Iterator[tuple[str, Entry]]:
        """Everything known of the paths below a scope."""
        prefix = f'{scope}/' if scope else ''
        for path, entry in self._entries.items():
            if path.startswith(prefix):
                yield path, entry

    # Branches ---------------------------------------------------------------------------------------------------------

    def branch_from(self, scope: str, name: str, key: str) -> str | None:
        """A branch that no task has taken, and that began with this step; one that is known to, if there is one."""
        left = self._left.get(scope)
        if left is None or not left.branches:
            return None
        beginnings = self._beginnings.get(scope)
        if beginnings is None:
            beginnings = self._beginnings[scope] = self._find_beginnings(left.branches)
        for known in (key, None):
            branches = beginnings.get((name, known))
            while branches:
                branch = branches.popleft()
                if branch in left.branches:
                    return branch
        return None

    def _find_beginnings(self, branches: Iterable[str]) -> dict[tuple[str, str | None], deque[str]]:
        beginnings: dict[tuple[str, str | None], deque[str]] = {}
        for branch in branches:
            first = self.first_in(branch)
            if first is not None:
                entry = self._entries.get(first)
                key = None if entry is None else entry.key
                beginnings.setdefault((name_of(first), key), deque()).append(branch)
        return beginnings

    def new_branch(self, scope: str) -> str:
        """The path of a branch that there has never been."""
        number = self._highest[scope] = self._highest.get(scope, 0) + 1
        return f'{scope}/{BRANCH}{number}' if scope else f'{BRANCH}{number}'

    def count_branch(self, scope: str, number: int) -> None:
        """There is a branch of this number."""
        self._highest[scope] = max(self._highest.get(scope, 0), number)


def _is_within(path: str, scopes: Set[str]) -> bool:
    """Whether a path is one of these, or below one."""
    while path not in scopes:
        if not path:
            return False
        path = parent_of(path)
    return True
