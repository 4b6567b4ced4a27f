"""Search by words (BM25) over turns and facts with their neighbours; similarity by meaning is added with a weight."""

import calendar
import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from habilis.memory.contract import Fact, Hit, SessionHit, Turn
from habilis.memory.database import Cursor, Row
from habilis.memory.entries import COLUMNS, OWNED, Owner, find_owner, marks, parts, read_entries, read_entry, terms_of

_K1, _B = 1.2, 0.75
"""The usual parameters of BM25."""

_CANDIDATES = 300
"""Entries that are compared with a query; those with its rarest words come first."""

_CANDIDATES_FILTERED = 5000
"""Entries among which as many are looked for that pass, if a filter drops most of the first."""

_MAX_QUERY_TERMS = 16
"""Of a long query, the rarest terms decide."""

_MAX_JOINED = 8
"""Of these, entries that have several are looked for."""

NEARBY = 0.3
"""Weight of the turn before or after: an answer rarely repeats the words of its question."""

CONVERSATION = 0.15
"""Weight of all turns of a session: where a subject was spoken about, it is spoken about in other words too."""

MONTH = 0.1
"""Added to entries of a month that the query names."""

MEANING = 0.35
"""Weight of the embedder against the words."""

_MONTHS = tuple(calendar.month_name[1:])
_NAMED_MONTH = re.compile(rf'(?<=\w )(?:{"|".join(_MONTHS)})\b')
"""With a capital, and not at the start of a sentence: `may` and `march` are other words."""

_MIN_MEANING = 0.2
"""Similarity of an entry that is found by its meaning alone. Below it, small models see similarity everywhere."""

_SESSION_SHARES = (1.0, 0.5, 0.25)
"""Weights of the best hits of a session in its score."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which entries to search."""

    since: float | None = None
    until: float | None = None
    role: str | None = None
    """Turns with this role only."""

    session: str | None = None
    """Turns of this session only."""

    not_session: str | None = None
    """Turns of other sessions, and those of this one that are before `before`."""

    before: int = 1
    project: str | None = None
    """Entries of this project, and those of all projects."""

    type: str | None = None
    """`turn` or `fact`."""

    history: bool = False
    """Also facts that were replaced by newer ones."""

    def conditions(self) -> tuple[str, list[object]]:
        """The filter as SQL, which starts with `AND`, and its values."""
        turns_only = 'turn' if self.role is not None or self.session is not None else None
        given = {
            'at >= ?': self.since,
            'at < ?': self.until,
            'label = ?': self.role,
            'session = ?': self.session,
            f"(session <> ? OR type = 'fact' OR place < {int(self.before)})": self.not_session,
            "project IN ('', ?)": self.project,
            'type = ?': self.type or turns_only,
        }
        used = {sql: value for sql, value in given.items() if value is not None}
        current = '' if self.history else ' AND successor IS NULL'
        return ''.join(f' AND {sql}' for sql in used) + current, list(used.values())


class Similar(Protocol):
    """Entries by their meaning, for one query."""

    @property
    def best(self) -> Sequence[int]:
        """Numbers of the most similar ones."""
        ...

    def score(self, number: int) -> float | None:
        """Similarity of an entry; None if it is not known."""
        ...


@dataclass(kw_only=True)
class _Candidate:
    """An entry that is compared with the query."""

    number: int
    session: str
    place: int
    time: float
    words: float = 0.0
    nearby: float = 0.0
    conversation: float = 0.0
    month: float = 0.0
    meaning: float | None = None
    matched: tuple[str, ...] = ()

    @property
    def is_relevant(self) -> bool:
        return self.words > 0 or self.nearby > 0 or (self.meaning or 0.0) >= _MIN_MEANING

    @property
    def score(self) -> float:
        by_words = self.words + NEARBY * self.nearby + CONVERSATION * self.conversation + self.month
        return by_words if self.meaning is None else (1 - MEANING) * by_words + MEANING * max(self.meaning, 0.0)


def search(
    cursor: Cursor, user: str, query: str, *, limit: int, where: Filter, similar: Similar | None = None
) -> list[Hit]:
    """The entries of a user that fit best, in order."""
    owner = find_owner(cursor, user)
    if not owner.entries:
        return []
    weights, counts = _weights(cursor, owner, terms_of(query))
    found: dict[int, _Candidate] = {}
    for most in (_CANDIDATES, _CANDIDATES_FILTERED):
        matching = _matching(cursor, owner.key, counts, most)
        numbers = list(dict.fromkeys([*(similar.best if similar else ()), *matching]))
        found = _score(cursor, owner, numbers, weights, where)
        if 2 * len(found) >= len(numbers) or len(matching) < most:
            break
    _compare_neighbours(cursor, owner.key, found, where)
    _compare_conversations(found.values(), weights)
    months = {_MONTHS.index(name) + 1 for name in _NAMED_MONTH.findall(query)}
    for candidate in found.values() if months else ():
        candidate.month = MONTH if time.localtime(candidate.time).tm_mon in months else 0.0
    if similar is not None:
        for number, candidate in found.items():
            candidate.meaning = similar.score(number)
    best = sorted(found.values(), key=lambda one: (-round(one.score, 4), -one.time, -one.number))  # of equals the newer
    return _hits(cursor, owner.key, [one for one in best if one.is_relevant][:limit])


def matching_all(cursor: Cursor, owner: str, query: str, limit: int) -> list[int]:
    """Numbers of the entries that have all words of a query."""
    terms = list(dict.fromkeys(terms_of(query)))
    return cursor.matching(owner, terms, limit) if terms else []


# Words ----------------------------------------------------------------------------------------------------------------


def _weights(cursor: Cursor, owner: Owner, terms: Sequence[str]) -> tuple[dict[str, float], dict[str, int]]:
    """How much each term of the query counts, and in how many entries it is if it is in any."""
    different = list(dict.fromkeys(terms))
    counts: dict[str, int] = {}
    for start in range(0, len(different), 500):
        part = different[start : start + 500]
        sql = f'SELECT term, entries FROM {{s}}counts WHERE owner = ? AND term IN ({marks(part)})'
        counts.update({str(term): int(count) for term, count in cursor.all(sql, owner.key, *part)})
    rarest = sorted(different, key=lambda term: counts.get(term, 0))[:_MAX_QUERY_TERMS]
    weights = {term: _weight(owner.entries, counts.get(term, 0)) for term in rarest}
    return weights, {term: counts[term] for term in rarest if counts.get(term)}


def _weight(total: int, count: int) -> float:
    return math.log(1 + max(total - count + 0.5, 0.5) / (count + 0.5))


def _matching(cursor: Cursor, owner: str, counts: Mapping[str, int], limit: int) -> list[int]:
    """Entries with all terms, then with fewer of the common ones, then with any term, the rarest first."""
    known = sorted(counts, key=lambda term: counts[term])[:_MAX_JOINED]
    pairs = [[one, other] for number, one in enumerate(known[:4]) for other in known[number + 1 : 4]]
    groups = [*(known[:size] for size in range(len(known), 2, -1)), *pairs, *([term] for term in known)]
    numbers: dict[int, None] = {}
    for group in groups:
        if len(numbers) >= limit:
            break
        if len(group) == 1 or counts[group[0]] > limit // 4:  # all entries with a rare term are found by it alone
            numbers.update(dict.fromkeys(cursor.matching(owner, group, limit)))
    return list(numbers)[:limit]


def _score(
    cursor: Cursor, owner: Owner, numbers: Sequence[int], weights: Mapping[str, float], where: Filter
) -> dict[int, _Candidate]:
    average = max(owner.terms / owner.entries, 1.0)
    total = sum(weights.values()) * (_K1 + 1) or 1.0
    conditions, values = where.conditions()
    found: dict[int, _Candidate] = {}
    for part in parts(numbers):
        if len(found) >= _CANDIDATES:
            break
        sql = f"""SELECT number, session, place, at, terms FROM {{s}}entries
            WHERE {OWNED} AND number IN ({marks(part)}){conditions}"""
        for number, session, place, at, joined in cursor.all(sql, owner.key, *part, *values):
            terms = joined.split()
            # a search in the text is much faster than one in the list, and most entries lack most terms
            times = {term: n for term in weights if term in joined and (n := terms.count(term))}
            norm = _K1 * (1 - _B + _B * len(terms) / average)
            score = sum(weights[term] * n * (_K1 + 1) / (n + norm) for term, n in times.items())
            found[number] = _Candidate(
                number=number, session=session, place=place, time=at, words=score / total, matched=tuple(times)
            )
    return found


# Neighbours -----------------------------------------------------------------------------------------------------------


def _compare_neighbours(cursor: Cursor, owner: str, found: dict[int, _Candidate], where: Filter) -> None:
    """Let each turn count for those before and after it, which may become candidates by that."""
    places = {(one.session, one.place): one for one in found.values() if one.place}
    best = sorted((one for one in places.values() if one.words), key=lambda one: -one.words)[:30]
    wanted = {(one.session, one.place + step) for one in best for step in (-1, 1)} - places.keys()
    for row in _turns_at(cursor, owner, wanted, where):
        number, session, place, at = row[0], row[3], row[4], row[7]
        places[session, place] = found[number] = _Candidate(number=number, session=session, place=place, time=at)
    for (session, place), one in places.items():
        nearby = [places.get((session, place + step)) for step in (-1, 1)]
        one.nearby = max((other.words for other in nearby if other), default=0.0)


def _compare_conversations(found: Collection[_Candidate], weights: Mapping[str, float]) -> None:
    """How well the turns of a session match together; each of its candidates gets that."""
    turns = defaultdict[str | int, Counter[str]](Counter)
    for one in found:
        turns[one.session or one.number].update(one.matched)  # a fact is alone
    total = sum(weights.values()) * (_K1 + 1) or 1.0
    scores = {
        session: sum(weights[term] * n * (_K1 + 1) / (n + _K1) for term, n in counts.items()) / total
        for session, counts in turns.items()
    }
    for one in found:
        one.conversation = scores[one.session or one.number]


def _turns_at(cursor: Cursor, owner: str, places: Iterable[tuple[str, int]], where: Filter | None = None) -> list[Row]:
    """The rows of the turns at these places."""
    by_session = defaultdict[str, list[int]](list)
    for session, place in places:
        by_session[session].append(place)
    conditions, values = where.conditions() if where else ('', [])
    rows: list[Row] = []
    for session, numbers in by_session.items():
        for part in parts(numbers):
            sql = f"""SELECT {COLUMNS} FROM {{s}}entries
                WHERE owner = ? AND type = 'turn' AND session = ? AND place IN ({marks(part)}){conditions}"""
            rows += cursor.all(sql, owner, session, *part, *values)
    return rows


def with_neighbours(cursor: Cursor, user: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits with the turns around each."""
    owner = find_owner(cursor, user).key
    turns = [hit.entry for hit in hits if isinstance(hit.entry, Turn)]
    wanted = {(turn.session, turn.position + step) for turn in turns for step in (-1, 1)}
    found = {(row[3], row[4]): read_entry(row) for row in _turns_at(cursor, owner, wanted)}
    return [replace(hit, around=_around(hit.entry, found)) if isinstance(hit.entry, Turn) else hit for hit in hits]


def _around(turn: Turn, found: Mapping[tuple[str, int], Turn | Fact]) -> tuple[Turn, ...]:
    nearby = (found.get((turn.session, turn.position + step)) for step in (-1, 1))
    return tuple(one for one in nearby if isinstance(one, Turn))


# Results --------------------------------------------------------------------------------------------------------------


def _hits(cursor: Cursor, owner: str, best: Sequence[_Candidate]) -> list[Hit]:
    entries = read_entries(cursor, owner, [one.number for one in best])
    return [
        Hit(
            entry=entries[one.number],
            score=round(one.score, 4),
            words=round(one.words, 4),
            nearby=round(one.nearby, 4),
            meaning=None if one.meaning is None else round(one.meaning, 4),
            matched=one.matched,
        )
        for one in best
    ]


def roll_up(hits: Iterable[Hit], limit: int) -> list[SessionHit]:
    """The sessions of the hits, best first."""
    by_session = defaultdict[str, list[Hit]](list)
    for hit in hits:
        if isinstance(hit.entry, Turn):
            by_session[hit.entry.session].append(hit)
    found = [
        SessionHit(
            session=session,
            score=round(sum(share * hit.score for share, hit in zip(_SESSION_SHARES, of, strict=False)), 4),
            hits=tuple(of),
        )
        for session, of in by_session.items()
    ]
    return sorted(found, key=lambda one: -one.score)[:limit]
