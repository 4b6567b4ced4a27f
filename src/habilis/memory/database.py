"""The databases that a memory can be in: a SQLite file or PostgreSQL. The SQL of the other modules is for both."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar('T')
VERSION = 3
"""Of the tables. Databases with another version are refused."""

TABLES = """
CREATE TABLE {s}owners (
    owner {serial},
    name TEXT NOT NULL UNIQUE,
    entries BIGINT NOT NULL DEFAULT 0,
    terms BIGINT NOT NULL DEFAULT 0,
    removals BIGINT NOT NULL DEFAULT 0,
    purged BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE {s}entries (
    number {serial},
    owner TEXT NOT NULL,
    type TEXT NOT NULL,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    project TEXT NOT NULL,
    place BIGINT NOT NULL,
    label TEXT NOT NULL,
    text {bytes} NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    source TEXT,
    successor TEXT,
    digest TEXT NOT NULL,
    terms TEXT NOT NULL,
    UNIQUE (owner, id)
);
CREATE INDEX {i}entries_of_sessions ON {s}entries (owner, type, session, place);
CREATE INDEX {i}entries_by_digest ON {s}entries (owner, digest);
CREATE TABLE {s}counts (owner TEXT, term TEXT, entries BIGINT NOT NULL, PRIMARY KEY (owner, term));
CREATE TABLE {s}vectors (
    version {serial}, number BIGINT NOT NULL UNIQUE, owner TEXT NOT NULL, embedder TEXT NOT NULL, data {bytes} NOT NULL
);
CREATE INDEX {i}vectors_of_owners ON {s}vectors (owner, version);
CREATE TABLE {s}tasks (owner TEXT, number BIGINT, data TEXT NOT NULL, PRIMARY KEY (owner, number));
"""
"""`entries.owner` is `u_` and the number of the user. No term of a text has a `_`, so the index of words can have both.

`place` is the position of a turn, `label` its role or the kind of a fact. `terms` has the stems of the text in order,
`digest` that of a normalized fact. `counts` has in how many entries of a user a term is. `owners.removals` counts the
deletions, and `vectors.version` the additions, so that a process sees what others have changed. `owners.purged` is the
number of deletions whose bytes are out of the files too.
"""


Row = tuple[Any, ...]
"""A row of a result: its columns as the database gives them."""


class Cursor(Protocol):
    """Executes SQL inside a transaction. `?` marks a value, `{s}` the schema."""

    def all(self, sql: str, *values: object) -> list[Row]:
        """All rows."""
        ...

    def one(self, sql: str, *values: object) -> Row | None:
        """The first row."""
        ...

    def run(self, sql: str, *values: object) -> int:
        """Number of rows that were changed."""
        ...

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Execute a statement once for each row."""
        ...

    def index(self, number: int, owner: str, terms: str) -> None:
        """Add an entry, which was inserted before, to the index of words."""
        ...

    def unindex(self, number: int, owner: str, terms: str) -> None:
        """Remove an entry, which is deleted after, from the index of words."""
        ...

    def matching(self, owner: str, terms: Sequence[str], limit: int) -> list[int]:
        """The newest entries of an owner that have all of the terms."""
        ...


class Database(Protocol):
    """Where a memory is."""

    async def run(self, work: Callable[[Cursor], T]) -> T:
        """Do work in one transaction. It is durable when this returns."""
        ...

    async def read(self, work: Callable[[Cursor], T]) -> T:
        """Do work that only reads, on one consistent state. It does not wait for others that write."""
        ...

    async def purge(self) -> None:
        """Remove what was deleted from the files of the database too."""
        ...

    async def close(self) -> None:
        """Free the connection. The next use connects again."""
        ...
