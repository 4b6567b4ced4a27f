"""Adding a fact: what says the same already, and what it replaces."""

from dataclasses import replace

from habilis.core.errors import RememberError
from habilis.memory.context import STANDING
from habilis.memory.contract import Fact
from habilis.memory.database import Cursor
from habilis.memory.entries import COLUMNS, digest_of, entry_terms, find_id, insert, lock_owner, read_entry, value_said


def add_fact(cursor: Cursor, user: str, fact: Fact, replaces: str | None) -> Fact:
    """Add a fact, or return the one that says the same. Raises `RememberError`."""
    owner = lock_owner(cursor, user)
    if fact.source is not None:
        fact = replace(fact, source=find_id(cursor, owner, fact.source, type_='turn')[1].id)
    old: Fact | None = None
    if replaces is not None:
        found = find_id(cursor, owner, replaces, type_='fact')[1]
        assert isinstance(found, Fact)
        old = found
        if old.superseded_by is not None:
            msg = f'the fact {old.id} was replaced by {old.superseded_by} already; replace that one'
            raise RememberError(msg)
    sql = f"""SELECT {COLUMNS} FROM {{s}}entries
        WHERE owner = ? AND digest = ? AND type = 'fact' AND successor IS NULL AND (? OR project IN ('', ?))"""
    same = cursor.one(sql, owner, digest_of(fact.text), fact.kind in STANDING and not fact.project, fact.project)
    if same is not None:
        known = read_entry(same)
        assert isinstance(known, Fact)
        fact = _with_kind(cursor, owner, known, fact)
    else:
        insert(cursor, owner, fact, entry_terms(fact))
        old = old or _same_but_for_a_number(cursor, owner, fact)
    if old is not None and old.id != fact.id:
        cursor.run('UPDATE {s}entries SET successor = ? WHERE owner = ? AND id = ?', fact.id, owner, old.id)
    return fact


def _with_kind(cursor: Cursor, owner: str, known: Fact, fact: Fact) -> Fact:
    """The known fact, of the new kind if only that matters for every task."""
    if known.kind in STANDING or fact.kind not in STANDING:
        return known
    sql = 'UPDATE {s}entries SET label = ?, project = ? WHERE owner = ? AND id = ?'
    cursor.run(sql, fact.kind, fact.project, owner, known.id)
    return replace(known, kind=fact.kind, project=fact.project)


def _same_but_for_a_number(cursor: Cursor, owner: str, fact: Fact) -> Fact | None:
    """The fact that differs in the number that it ends with alone, such as a code or an address: it was replaced."""
    said = value_said(fact.text)
    if said is None:
        return None
    sql = f"""SELECT {COLUMNS} FROM {{s}}entries
        WHERE owner = ? AND type = 'fact' AND successor IS NULL AND label = ? AND project = ? AND id <> ?"""
    rows = cursor.all(sql, owner, fact.kind, fact.project, fact.id)
    found = [entry for entry in map(read_entry, rows) if value_said(entry.text) == said]
    return found[-1] if found and isinstance(found[-1], Fact) else None
