"""Full-text search over tools: those of a library, in a SQLite file that can be deleted at any time, or those of a run,
in memory."""

import contextlib
import math
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from habilis.core.closing import close_with
from habilis.core.stems import STOP_WORDS, Stemmer

_FORMAT = 3
"""Of the file: the tables, and how words are found in texts. An index of another format is made anew."""

_SCHEMA = f"""
PRAGMA user_version = {_FORMAT};
CREATE TABLE IF NOT EXISTS tools (id INTEGER PRIMARY KEY, name TEXT UNIQUE, version INTEGER, summary TEXT,
    signature TEXT, title TEXT, body TEXT);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(terms, tokenize='unicode61', detail=none, columnsize=0);
CREATE TABLE IF NOT EXISTS counts (term TEXT PRIMARY KEY, tools INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (stamp TEXT);
"""
_COUNT_ONE = 'INSERT INTO counts VALUES (?, 1) ON CONFLICT (term) DO UPDATE SET tools = tools + 1'
_ALL = ''
"""The term that is counted once for every tool."""

_CANDIDATES = 300
"""Tools that are compared with a query; those with its rarest words come first."""

_IN_TITLE = 1.0
_IN_BODY = 0.7
"""What a word of the query counts if the tool has it in its name or summary, or only in the rest of its text."""

_STOP_WORDS = STOP_WORDS | frozenset('function get give given python return tool write'.split())
_LITERAL = re.compile(r"""(?<!\w)(['"]).*?\1(?!\w)|\d[\d.,]*""")
"""Texts in quotes and numbers: they are arguments, and say nothing about the tool."""

_HUMP = re.compile(r'(?<=[a-z0-9])(?=[A-Z])')
_CAMEL_CASE = re.compile(r'\b\w*[a-z0-9][A-Z]\w*')

Row = tuple[str, int, str, str, str, str]
"""Name, version, summary, signature, stems of name and summary, stems of the rest."""


def has_values(query: str) -> bool:
    """Whether a query has values to call a tool with."""
    return _LITERAL.search(query) is not None


@dataclass(frozen=True, kw_only=True)
class IndexedTool:
    """What is searched of one tool."""

    name: str
    version: int
    summary: str
    signature: str
    text: str = ''


@dataclass(frozen=True, kw_only=True)
class FoundTool:
    """A tool that fits a query."""

    name: str
    version: int
    summary: str
    signature: str
    score: float
    """How well it fits, 0 to 1: the share of the query's weight that its words match (rare words weigh more), and where
    there is an embedder, a mean of this and the similarity of meaning."""


class SearchIndex:
    """The index of one library, or of the tools of one run."""

    def __init__(self, path: Path | None) -> None:
        """An index in a file; None: in memory."""
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._stemmer = Stemmer(_STOP_WORDS)

    def search(self, query: str, *, limit: int, threshold: float) -> list[FoundTool]:
        """The tools that share words with the query, best first."""
        if not self._exists:
            return []
        with self._open() as db:
            terms = self._stem(_LITERAL.sub(' ', query)) or self._stem(query)
            having = {term: _count(db, term) for term in terms}
            total = max(_count(db, _ALL), *having.values(), 0)
            weights = {term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in having.items()}
            ids = _candidates(db, having)
            rows = db.execute(_select(ids), ids).fetchall()
        whole = sum(weights.values()) or 1.0
        words = [(f' {term} ', weight / whole) for term, weight in weights.items()]
        scored = [(_score(row, words), row) for row in rows]
        best = sorted((one for one in scored if one[0] >= threshold), key=_rank)[:limit]
        return [
            FoundTool(name=name, version=version, summary=summary, signature=signature, score=score)
            for score, (name, version, summary, signature, *_) in best
        ]

    def summaries(self) -> dict[str, str]:
        """What each tool does, by name."""
        if not self._exists:
            return {}
        with self._open() as db:
            return dict(db.execute('SELECT name, summary FROM tools').fetchall())

    def find(self, scores: Mapping[str, float]) -> list[FoundTool]:
        """The tools of these names, with their scores, best first."""
        marks = ', '.join('?' * len(scores))
        query = f'SELECT name, version, summary, signature FROM tools WHERE name IN ({marks})'
        with self._open() as db:
            rows = db.execute(query, list(scores)).fetchall()
        found = [FoundTool(name=n, version=v, summary=s, signature=g, score=scores[n]) for n, v, s, g in rows]
        return sorted(found, key=lambda one: (-one.score, len(one.summary), one.name))

    @property
    def _exists(self) -> bool:
        return self._path is None or self._path.parent.is_dir()

    def versions(self) -> dict[str, int]:
        """All tools in the index, with their versions."""
        if not self._exists:
            return {}
        with self._open() as db:
            return dict(db.execute('SELECT name, version FROM tools').fetchall())

    def put(self, entry: IndexedTool) -> None:
        """Add or replace a tool."""
        with self._change() as db:
            _drop(db, entry.name)
            added = self._insert(db, entry)
            db.executemany(_COUNT_ONE, [(term,) for term in added])

    def drop(self, name: str) -> None:
        """Remove a tool."""
        with self._change() as db:
            _drop(db, name)

    def replace_all(self, entries: Iterable[IndexedTool]) -> None:
        """Rebuild the index."""
        with self._change() as db:
            db.execute('DELETE FROM tools')
            db.execute('DELETE FROM words')
            counts = Counter[str]()
            for entry in entries:
                counts.update(self._insert(db, entry))
            db.execute('DELETE FROM counts')
            db.executemany('INSERT INTO counts VALUES (?, ?)', counts.items())

    def mark(self, stamp: str) -> None:
        """Record the state of the folder from which the index was built."""
        with self._change() as db:
            db.execute('DELETE FROM marks')
            db.execute('INSERT INTO marks VALUES (?)', (stamp,))

    def is_marked(self, stamp: str) -> bool:
        """Whether the index was built from this state of the folder."""
        if not self._exists:
            return True
        with self._open() as db:
            return db.execute('SELECT stamp FROM marks').fetchall() == [(stamp,)]

    def _insert(self, db: sqlite3.Connection, entry: IndexedTool) -> set[str]:
        title = self._stem(_split_names(f'{entry.name} {entry.summary}'))
        body = [term for term in self._stem(_split_names(entry.text)) if term not in title]
        return _insert(db, entry, title, body)

    def _stem(self, text: str) -> list[str]:
        """The different words of a text, as stems."""
        return list(dict.fromkeys(self._stemmer.terms(text)))

    @contextlib.contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            if self._connection is None:
                self._connection = self._connect()
                close_with(self, self._connection)
            with self._connection:
                yield self._connection

    @contextlib.contextmanager
    def _change(self) -> Generator[sqlite3.Connection]:
        with self._open() as db:
            db.execute('BEGIN IMMEDIATE')  # else another process could add the same tool between two statements
            yield db

    def reset(self) -> None:
        """Begin with an empty index."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._delete()

    def _delete(self) -> None:
        if self._path is None:
            return
        for ending in ('', '-journal'):
            with contextlib.suppress(OSError):
                self._path.with_name(self._path.name + ending).unlink(missing_ok=True)

    def _connect(self) -> sqlite3.Connection:
        try:
            return _connection(self._path)
        except sqlite3.DatabaseError:  # damaged: it is made from the folders anyway
            self._delete()
        try:
            return _connection(self._path)
        except sqlite3.DatabaseError:  # the folder is read-only
            return _connection(None)


def split_name(name: str) -> list[str]:
    """The words of a name in snake case or camel case, in lower case."""
    return _HUMP.sub('_', name).lower().strip('_').split('_')


def _split_names(text: str) -> str:
    """The text, and the parts of the names in it that are written in camel case. Other names are split as words are."""
    return ' '.join([text, *(_HUMP.sub(' ', name) for name in _CAMEL_CASE.findall(text))])


def _connection(path: Path | None) -> sqlite3.Connection:
    db = sqlite3.connect(path or ':memory:', timeout=10, check_same_thread=False)
    try:
        db.execute('PRAGMA journal_mode = TRUNCATE')  # others make and delete files, which changes the folder's time
        db.execute('PRAGMA synchronous = OFF')  # a lost index is made anew
        _check_format(db)
        db.executescript(_SCHEMA)
    except sqlite3.Error:
        db.close()
        raise
    return db


def _check_format(db: sqlite3.Connection) -> None:
    [(found,)] = db.execute('PRAGMA user_version').fetchall()
    if found != _FORMAT and db.execute('SELECT 1 FROM sqlite_master').fetchone():
        msg = f'the index has format {found}, not {_FORMAT}'
        raise sqlite3.DatabaseError(msg)


def _insert(db: sqlite3.Connection, entry: IndexedTool, title: list[str], body: list[str]) -> set[str]:
    values = (entry.name, entry.version, entry.summary, entry.signature, ' '.join(title), ' '.join(body))
    made = db.execute(
        'INSERT INTO tools (name, version, summary, signature, title, body) VALUES (?, ?, ?, ?, ?, ?)', values
    )
    terms = {*title, *body}
    db.execute('INSERT INTO words (rowid, terms) VALUES (?, ?)', (made.lastrowid, ' '.join(terms)))
    return {*terms, _ALL}


def _drop(db: sqlite3.Connection, name: str) -> None:
    row = db.execute('SELECT id, title, body FROM tools WHERE name = ?', (name,)).fetchone()
    if row is not None:
        number, title, body = row
        terms = {*title.split(), *body.split(), _ALL}
        db.executemany('UPDATE counts SET tools = tools - 1 WHERE term = ?', [(term,) for term in terms])
        db.execute('DELETE FROM words WHERE rowid = ?', (number,))
        db.execute('DELETE FROM tools WHERE id = ?', (number,))


def _count(db: sqlite3.Connection, term: str) -> int:
    row = db.execute('SELECT tools FROM counts WHERE term = ?', (term,)).fetchone()
    return row[0] if row else 0


def _candidates(db: sqlite3.Connection, having: dict[str, int]) -> list[int]:
    """Tools that have all words that are common, then those with the rarest ones, until there are enough."""
    known = sorted((term for term, count in having.items() if count), key=lambda term: having[term])
    ids: dict[int, None] = {}
    for size in range(len(known), 0, -1):
        together = known[:size]  # the rarest
        _add(db, ids, ' AND '.join(f'"{term}"' for term in together))
    for term in known:
        _add(db, ids, f'"{term}"')
    return list(ids)[:_CANDIDATES]


def _add(db: sqlite3.Connection, ids: dict[int, None], match: str) -> None:
    if len(ids) < _CANDIDATES:
        rows = db.execute('SELECT rowid FROM words WHERE words MATCH ? LIMIT ?', (match, _CANDIDATES))
        ids.update(dict.fromkeys(row[0] for row in rows))


def _select(ids: list[int]) -> str:
    marks = ', '.join('?' * len(ids))
    return f'SELECT name, version, summary, signature, title, body FROM tools WHERE id IN ({marks})'


def _score(row: Row, words: list[tuple[str, float]]) -> float:
    title, body = f' {row[4]} ', f' {row[5]} '
    matched = 0.0
    for word, share in words:
        if word in title:
            matched += share * _IN_TITLE
        elif word in body:
            matched += share * _IN_BODY
    return round(matched, 4)


def _rank(scored: tuple[float, Row]) -> tuple[float, int, str]:
    """Best first; among equals, the tool with the shortest summary."""
    score, (name, _, summary, *_) = scored
    return -score, len(summary), name
