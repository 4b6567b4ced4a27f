"""The bookkeeping of calls: who asked which model, and what it cost."""

import csv
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from habilis.core.errors import HabilisError
from habilis.models.contract import Usage


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One call of a model."""

    model: str
    agent: str
    usage: Usage
    at: datetime = field(default_factory=_now)


class Ledger:
    """The calls of one agent and of those that work for it. Safe to share between threads.

    `child` opens the ledger of a subagent: what is recorded there counts there and here.
    """

    def __init__(self, name: str = 'agent') -> None:
        self.name = name
        """The agent it belongs to."""

        self._above: tuple[Self, ...] = ()
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._total = Usage()

    def child(self, name: str) -> Self:
        """A ledger whose entries are also summed into this one."""
        ledger = type(self)(name)
        ledger._above = (self, *self._above)
        ledger._lock = self._lock  # one for the whole family, so that a total never misses half an entry
        return ledger

    def record(
        self,
        model: str,
        usage: Usage,
        *,
        agent: str | None = None,
        at: datetime | None = None,
        earlier: bool = False,
    ) -> Entry:
        """Write down one call; `agent` is this ledger's own unless another is named.

        One that was made `earlier`, and counted above then, counts only here: a run that is resumed knows of it.
        """
        entry = Entry(model=model, agent=self.name if agent is None else agent, usage=usage, at=at or _now())
        with self._lock:
            for ledger in (self, *(() if earlier else self._above)):
                ledger._entries.append(entry)
                ledger._total += usage
        return entry

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All calls so far, those of children included, in the order in which they were recorded."""
        with self._lock:
            return tuple(self._entries)

    @property
    def total(self) -> Usage:
        """All calls together."""
        with self._lock:
            return self._total

    def by_model(self) -> dict[str, Usage]:
        """The total of each model, in the order of their first call."""
        return _sums(self.entries, lambda entry: entry.model)

    def by_agent(self) -> dict[str, Usage]:
        """The total of each agent, in the order of their first call."""
        return _sums(self.entries, lambda entry: entry.agent)

    def export(self, path: str | Path) -> None:
        """Write it all to a file: `.json` (calls and totals) or `.csv` (one line a call)."""
        path = Path(path)
        if path.suffix.lower() not in {'.json', '.csv'}:
            msg = f'cannot export to {path.name!r}: name a file that ends in .json or .csv'
            raise HabilisError(msg)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() == '.json':
            path.write_text(self._json(), encoding='utf-8')
        else:
            _write_csv(path, self.entries)

    def _json(self) -> str:
        entries = self.entries
        book = {
            'total': asdict(sum((entry.usage for entry in entries), Usage())),
            'by_model': _plain(_sums(entries, lambda entry: entry.model)),
            'by_agent': _plain(_sums(entries, lambda entry: entry.agent)),
            'entries': [_row(entry) for entry in entries],
        }
        return json.dumps(book, indent=2) + '\n'


def _sums(entries: Iterable[Entry], key: Callable[[Entry], str]) -> dict[str, Usage]:
    sums: dict[str, Usage] = {}
    for entry in entries:
        sums[key(entry)] = sums.get(key(entry), Usage()) + entry.usage
    return sums


def _plain(sums: dict[str, Usage]) -> dict[str, dict[str, object]]:
    return {name: asdict(usage) for name, usage in sums.items()}


def _row(entry: Entry) -> dict[str, object]:
    return {'at': entry.at.isoformat(), 'agent': entry.agent, 'model': entry.model, **asdict(entry.usage)}


def _write_csv(path: Path, entries: Iterable[Entry]) -> None:
    columns = ['at', 'agent', 'model', *asdict(Usage())]
    with path.open('w', encoding='utf-8', newline='') as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(_row(entry) for entry in entries)
