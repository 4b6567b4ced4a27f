"""Turns and facts as rows of the database, and the words that they are found by."""

import hashlib
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from habilis.core.errors import RememberError
from habilis.core.stems import STOP_WORDS, Stemmer, folded
from habilis.memory.contract import Entry, Fact, FactKind, Turn
from habilis.memory.database import Cursor, Row

COLUMNS = 'number, type, id, session, place, label, text, at, source, successor, project'
"""The columns that `read_entry` takes."""

MAX_TERMS = 20_000
"""Of one entry; the rest of a longer text is kept, and is not searched."""

OWNED = "owner || '' = ?"
"""The condition on the owner beside one on numbers. Being an expression, it keeps SQLite off the index of owners."""

MIN_ID_START = 4
"""Characters of the start of an id that may stand for it."""

MAX_ROWS_AT_ONCE = 500
"""Values in one statement: older versions of SQLite take up to 999."""

_MORE_STOP_WORDS = (
    'about after again all also am another any because been before being between both but could d did didn does doesn '
    'doing don done down during each ever few further had hadn has hasn have haven having he her here hers him his if '
    'isn just ll m many more most much no nor not now off once only other our ours out over own re s same she should '
    'so some such t than that their theirs them then there these they those through too under until up us ve very was '
    'wasn we were weren where while who whom whose why would wouldn yes yet yours'
)
PLAIN_ROLES = frozenset({'user', 'assistant', 'system', 'tool'})
"""Other roles are names of people, which a query may mention."""

_ENDS_WITH_NUMBER = re.compile(r'(.*\S (?:is|are|=)|.*\S:) [^\W\d_]{0,3}[\d][\w.,:/+-]*')

_stemmer = Stemmer(STOP_WORDS | frozenset(_MORE_STOP_WORDS.split()))


@dataclass(frozen=True, kw_only=True)
class Owner:
    """A user in the database."""

    key: str
    """Value of `owner` in the tables."""

    entries: int
    """Number of the user's entries."""

    terms: int
    """Number of all their terms."""

    removals: int = 0
    """How often entries were deleted."""


def terms_of(text: str) -> list[str]:
    """The terms of a text, in order."""
    return _stemmer.terms(text, MAX_TERMS)


def entry_terms(entry: Entry) -> list[str]:
    """The terms that an entry is found by."""
    if isinstance(entry, Turn) and entry.role not in PLAIN_ROLES:
        return terms_of(f'{entry.role} {entry.text}')
    return terms_of(entry.text)


def find_owner(cursor: Cursor, user: str) -> Owner:
    """The user in the database; without entries if there is no such user yet."""
    row = cursor.one('SELECT owner, entries, terms, removals FROM {s}owners WHERE name = ?', user)
    if row is None:
        return Owner(key='', entries=0, terms=0)
    return Owner(key=f'u_{row[0]}', entries=row[1], terms=row[2], removals=row[3])


def lock_owner(cursor: Cursor, user: str) -> str:
    """The key of a user, who is added if new. Others that write for this user wait until the transaction ends."""
    cursor.run('INSERT INTO {s}owners (name) VALUES (?) ON CONFLICT (name) DO NOTHING', user)
    cursor.run('UPDATE {s}owners SET entries = entries WHERE name = ?', user)
    row = cursor.one('SELECT owner FROM {s}owners WHERE name = ?', user)
    assert row is not None
    return f'u_{row[0]}'


def new_id() -> str:
    """An id for an entry."""
    return secrets.token_hex(6)


def plain_words(text: str) -> str:
    """A text without what cannot be seen: forms of letters, case, zero-width characters and kinds of spaces."""
    return ' '.join(folded(text).split())


def digest_of(text: str) -> str:
    """The same for texts that differ only in what `plain_words` leaves out, and in punctuation at their end."""
    normalized = plain_words(text).rstrip('.!?;,: ')
    return hashlib.sha256(normalized.encode('utf-8', 'surrogatepass')).hexdigest()[:32]


def value_said(text: str) -> str | None:
    """What a text says has a number, if it ends with that: "the code is 7731" has "the code is". None otherwise."""
    found = _ENDS_WITH_NUMBER.fullmatch(plain_words(text).rstrip('.!;, '))
    return found[1] if found else None


# Writing --------------------------------------------------------------------------------------------------------------


def insert(cursor: Cursor, owner: str, entry: Entry, terms: Sequence[str]) -> None:
    """Add an entry with its `entry_terms`, made before the transaction, which has called `lock_owner`."""
    joined = ' '.join(terms)
    if isinstance(entry, Turn):
        values = ('turn', entry.id, entry.session, entry.project, entry.position, entry.role)
        links, digest = (None, None), ''
    else:
        values = ('fact', entry.id, '', entry.project, 0, entry.kind)
        links, digest = (entry.source, entry.superseded_by), digest_of(entry.text)
    row = cursor.one(
        """INSERT INTO {s}entries
        (owner, type, id, session, project, place, label, text, at, source, successor, digest, terms)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number""",
        *(owner, *values, _stored(entry.text), entry.time, *links, digest, joined),
    )
    assert row is not None
    cursor.index(row[0], owner, joined)
    cursor.many(
        """INSERT INTO {s}counts (owner, term, entries) VALUES (?, ?, 1)
        ON CONFLICT (owner, term) DO UPDATE SET entries = counts.entries + 1""",
        [(owner, term) for term in sorted(set(terms))],
    )
    _add_to_totals(cursor, owner, entries=1, terms=len(terms))


def delete(cursor: Cursor, owner: str, numbers: Sequence[int]) -> None:
    """Delete entries of a user from all tables, in a transaction that has called `lock_owner`."""
    for part in parts(numbers):
        listed = f'number IN ({marks(part)})'
        rows = cursor.all(f'SELECT number, terms FROM {{s}}entries WHERE {OWNED} AND {listed}', owner, *part)
        counts = Counter[str]()
        for number, joined in rows:
            cursor.unindex(number, owner, joined)
            counts.update(set(joined.split()))
        cursor.many(
            'UPDATE {s}counts SET entries = entries - ? WHERE owner = ? AND term = ?',
            [(count, owner, term) for term, count in sorted(counts.items())],
        )
        cursor.run(f'DELETE FROM {{s}}vectors WHERE {OWNED} AND {listed}', owner, *part)
        cursor.run(f'DELETE FROM {{s}}entries WHERE {OWNED} AND {listed}', owner, *part)
        _add_to_totals(cursor, owner, entries=-len(rows), terms=-sum(len(joined.split()) for _, joined in rows))
    cursor.run('DELETE FROM {s}counts WHERE owner = ? AND entries <= 0', owner)
    count_removal(cursor, owner)


def count_removal(cursor: Cursor, owner: str) -> None:
    """Note that something was deleted, in the same transaction: until a purge, its bytes are in the files."""
    cursor.run('UPDATE {s}owners SET removals = removals + 1 WHERE owner = ?', int(owner.removeprefix('u_')))


def unpurged(cursor: Cursor) -> list[Row]:
    """The users whose deletions are in the files, each with the number of deletions."""
    return cursor.all('SELECT owner, removals FROM {s}owners WHERE removals > purged')


def note_purged(cursor: Cursor, removals: Sequence[Row]) -> None:
    """The deletions that `unpurged` has listed are out of the files."""
    cursor.many('UPDATE {s}owners SET purged = ? WHERE owner = ?', [(count, owner) for owner, count in removals])


def _add_to_totals(cursor: Cursor, owner: str, *, entries: int, terms: int) -> None:
    cursor.run(
        'UPDATE {s}owners SET entries = entries + ?, terms = terms + ? WHERE owner = ?',
        *(entries, terms, int(owner.removeprefix('u_'))),
    )


# Reading --------------------------------------------------------------------------------------------------------------


def parts(numbers: Sequence[int]) -> Iterable[Sequence[int]]:
    """The numbers in parts that fit into a statement."""
    return (numbers[start : start + MAX_ROWS_AT_ONCE] for start in range(0, len(numbers), MAX_ROWS_AT_ONCE))


def marks(values: Sequence[object]) -> str:
    """`?, ?, ?`."""
    return ', '.join('?' * len(values))


def read_entry(row: Row) -> Entry:
    """The entry of a row with `COLUMNS`."""
    _, type_, id_, session, place, label, text, at, source, successor, project = row
    if type_ == 'turn':
        return Turn(id=id_, session=session, role=label, text=_loaded(text), time=at, position=place, project=project)
    kind = cast('FactKind', label)
    return Fact(id=id_, text=_loaded(text), kind=kind, source=source, time=at, superseded_by=successor, project=project)


def read_entries(cursor: Cursor, owner: str, numbers: Sequence[int]) -> dict[int, Entry]:
    """Entries of a user by their numbers."""
    found: dict[int, Entry] = {}
    for part in parts(numbers):
        sql = f'SELECT {COLUMNS} FROM {{s}}entries WHERE {OWNED} AND number IN ({marks(part)})'
        found.update({row[0]: read_entry(row) for row in cursor.all(sql, owner, *part)})
    return found


def find_id(cursor: Cursor, owner: str, given: str, *, type_: str | None = None) -> tuple[int, Entry]:
    """The entry of an id or of the start of one. Raises `RememberError`."""
    what = type_ or 'entry'
    sql = f'SELECT {COLUMNS} FROM {{s}}entries WHERE owner = ? AND id '
    rows = cursor.all(f'{sql} = ?', owner, given) if given.isalnum() else []
    if not rows and given.isalnum() and len(given) >= MIN_ID_START:
        rows = cursor.all(f'{sql} LIKE ?', owner, f'{given}%')
    found = [row for row in rows if type_ in (None, row[1])]
    if len(found) > 1:
        msg = f'{given!r} is the start of {len(found)} ids; give more of one'
        raise RememberError(msg)
    if not found:
        msg = f'no {what} has the id {given[:40]!r}; `habilis memory list` shows the ids'
        raise RememberError(msg)
    return found[0][0], read_entry(found[0])


def _stored(text: str) -> bytes:
    """A text of any characters, which text columns of PostgreSQL refuse: NUL, lone surrogates."""
    return text.encode('utf-8', 'surrogatepass')


def _loaded(data: bytes | memoryview) -> str:
    return bytes(data).decode('utf-8', 'surrogatepass')
