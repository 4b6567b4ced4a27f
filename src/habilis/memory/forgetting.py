"""Which entries to forget: by id, session, date or words, with all that was drawn from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from habilis.core.errors import RememberError
from habilis.memory.contract import Entry
from habilis.memory.database import Cursor
from habilis.memory.entries import delete, find_id, find_owner, lock_owner, marks, parts, read_entries
from habilis.memory.search import matching_all

_ALL = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What to forget, by exactly one of these."""

    ids: Sequence[str] = ()
    session: str | None = None
    before: float | None = None
    """Everything older than this time."""

    query: str | None = None
    """Everything that has all of these words, in any form."""

    def check(self) -> None:
        """Raise `RememberError` unless it is exactly one."""
        given = [bool(self.ids), self.session is not None, self.before is not None, self.query is not None]
        if sum(given) != 1:
            msg = 'say what to forget by exactly one of: ids, a session, a date, or words'
            raise RememberError(msg)


def find(cursor: Cursor, user: str, selection: Selection) -> list[Entry]:
    """The entries that `forget` would delete, oldest first. Raises `RememberError`."""
    owner = find_owner(cursor, user).key
    return list(read_entries(cursor, owner, sorted(_numbers(cursor, owner, selection))).values())


def forget(cursor: Cursor, user: str, selection: Selection) -> list[Entry]:
    """Delete entries, and return them, oldest first. Raises `RememberError`."""
    owner = lock_owner(cursor, user)
    numbers = sorted(_numbers(cursor, owner, selection))
    entries = read_entries(cursor, owner, numbers)
    if numbers:
        delete(cursor, owner, numbers)
    return [entries[number] for number in numbers]


def _numbers(cursor: Cursor, owner: str, selection: Selection) -> set[int]:
    selection.check()
    if selection.ids:
        chosen = {find_id(cursor, owner, given)[0] for given in selection.ids}
    elif selection.query is not None:
        chosen = set(matching_all(cursor, owner, selection.query, _ALL))
    elif selection.session is not None:
        sql = "SELECT number FROM {s}entries WHERE owner = ? AND type = 'turn' AND session = ?"
        chosen = _first(cursor.all(sql, owner, selection.session))
    else:
        chosen = _first(cursor.all('SELECT number FROM {s}entries WHERE owner = ? AND at < ?', owner, selection.before))
    return _with_derived(cursor, owner, chosen)


def _with_derived(cursor: Cursor, owner: str, chosen: set[int]) -> set[int]:
    """Also the facts that were drawn from these turns, and the older facts that these facts replaced."""
    new = chosen
    while new:
        ids = [entry.id for entry in read_entries(cursor, owner, sorted(new)).values()]
        found: set[int] = set()
        for part in _parts(ids):
            listed = marks(part)
            sql = f"""SELECT number FROM {{s}}entries WHERE owner = ? AND type = 'fact'
                AND (source IN ({listed}) OR successor IN ({listed}))"""
            found |= _first(cursor.all(sql, owner, *part, *part))
        new = found - chosen
        chosen = chosen | new
    return chosen


def _parts(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[part[0] : part[-1] + 1] for part in parts(range(len(ids))))


def _first(rows: Iterable[tuple[int, ...]]) -> set[int]:
    return {row[0] for row in rows}
