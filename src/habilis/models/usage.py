"""Ledger of model calls: model, agent, tokens and cost of each."""

import csv
import json
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from habilis.core.errors import HabilisError
from habilis.models.contract import Usage

MAX_ENTRIES = 10_000
"""How many calls a ledger remembers one by one: an agent may make millions."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class UsageEntry:
    """One call of a model."""

    model: str
    agent: str
    usage: Usage
    at: datetime = field(default_factory=_now)


class Ledger:
    """Model calls of an agent and its subagents. Thread-safe.

    `child` creates the ledger of a subagent, whose entries count in both ledgers.
    """

    def __init__(self, name: str = 'agent') -> None:
        self.name = name
        """Name of the agent."""

        self._parents: tuple[Self, ...] = ()
        self._lock = threading.Lock()
        self._entries: deque[UsageEntry] = deque(maxlen=MAX_ENTRIES)
        self._total = Usage()
        self._sums: dict[tuple[str, str], Usage] = {}
        """By model and agent."""

    def child(self, name: str) -> Self:
        """Create a ledger whose entries also count in this one."""
        ledger = type(self)(name)
        ledger._parents = (self, *self._parents)
        ledger._lock = self._lock  # shared, so that an entry is added to all totals atomically
        return ledger

    def record(
        self,
        model: str,
        usage: Usage,
        *,
        agent: str | None = None,
        at: datetime | None = None,
        earlier: bool = False,
    ) -> UsageEntry:
        """Record one call; `agent` defaults to the name of this ledger.

        With `earlier`, the call was made before the run was resumed and counts only here: the parents have counted it.
        """
        entry = UsageEntry(model=model, agent=self.name if agent is None else agent, usage=usage, at=at or _now())
        with self._lock:
            for ledger in (self, *(() if earlier else self._parents)):
                ledger._add(entry)
        return entry

    def _add(self, entry: UsageEntry) -> None:
        key = entry.model, entry.agent
        self._entries.append(entry)
        self._total += entry.usage
        before = self._sums.get(key)
        self._sums[key] = entry.usage if before is None else before + entry.usage

    @property
    def entries(self) -> tuple[UsageEntry, ...]:
        """The latest calls, at most `MAX_ENTRIES`, including those of children, in order."""
        with self._lock:
            return tuple(self._entries)

    @property
    def total(self) -> Usage:
        """Sum of all calls."""
        with self._lock:
            return self._total

    def by_model(self) -> dict[str, Usage]:
        """Sum per model, in order of the first call."""
        return self._sums_by(0)

    def by_agent(self) -> dict[str, Usage]:
        """Sum per agent, in order of the first call."""
        return self._sums_by(1)

    def _sums_by(self, part: int) -> dict[str, Usage]:
        with self._lock:
            known = list(self._sums.items())
        sums: dict[str, Usage] = {}
        for key, usage in known:
            sums[key[part]] = sums.get(key[part], Usage()) + usage
        return sums

    def export(self, path: str | Path) -> None:
        """Write the ledger to a file: `.json` (calls and totals) or `.csv` (one line per call)."""
        path = Path(path)
        if path.suffix.lower() not in {'.json', '.csv'}:
            msg = f'cannot export to {path.name!r}: use a file name that ends in .json or .csv'
            raise HabilisError(msg)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() == '.json':
            path.write_text(self._json(), encoding='utf-8')
        else:
            _write_csv(path, self.entries)

    def _json(self) -> str:
        content = {
            'total': asdict(self.total),
            'by_model': _plain(self.by_model()),
            'by_agent': _plain(self.by_agent()),
            'entries': [_row(entry) for entry in self.entries],
        }
        return json.dumps(content, indent=2) + '\n'


def _plain(sums: dict[str, Usage]) -> dict[str, dict[str, object]]:
    return {name: asdict(usage) for name, usage in sums.items()}


def _row(entry: UsageEntry) -> dict[str, object]:
    return {'at': entry.at.isoformat(), 'agent': entry.agent, 'model': entry.model, **asdict(entry.usage)}


def _write_csv(path: Path, entries: Iterable[UsageEntry]) -> None:
    columns = ['at', 'agent', 'model', *asdict(Usage())]
    with path.open('w', encoding='utf-8', newline='') as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(_row(entry) for entry in entries)
