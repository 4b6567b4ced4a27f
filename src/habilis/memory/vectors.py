"""Vectors of the entries: made in the background, stored as 16-bit floats, compared with numpy."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from habilis.memory.contract import Embedder, Entry, Turn
from habilis.memory.database import Cursor, Database
from habilis.memory.entries import PLAIN_ROLES, find_owner, read_entries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger('habilis.memory')

_BATCH = 32
_ROWS = 8 * _BATCH
"""Entries that are read at once and sorted by length: the texts of a batch are padded to the longest."""

_BEST = 50
"""Entries that may be found by their meaning alone."""

_DELAY = 0.5
"""Seconds before new entries are embedded: a chat searches directly after it has added a turn, and must not wait."""

_QUERY_SECONDS = 5.0
"""Maximum time to embed a query; a search does not wait longer for a second opinion."""

_PAUSE_SECONDS = 60.0
"""How long searches use words only after the embedder has failed."""

_BYTES = 2
"""Of one number of a stored vector."""

_MAX_CHARACTERS = 2000
"""Maximum number of characters of a text that is embedded; small models read no more."""


@dataclass(frozen=True, kw_only=True)
class Similarities:
    """See `search.Similar`."""

    best: Sequence[int]
    values: 'NDArray[np.float32]'
    rows: dict[int, int]
    """Row of an entry in `values`."""

    def score(self, number: int) -> float | None:
        row = self.rows.get(number)
        return None if row is None else float(self.values[row])


class Vectors:
    """The vectors of one user, by one embedder.

    Entries without a vector of this embedder are embedded in the background, a batch at a time. Until that is done they
    are found by their words. So a change of the embedder loses nothing.
    """

    def __init__(self, database: Database, user: str, embedder: Embedder) -> None:
        self._database = database
        self._user = user
        self._embedder = embedder
        self._matrix: NDArray[np.float32] | None = None
        self._rows: dict[int, int] = {}
        self._size = 0
        """Length of the vectors; 0 if it is not known yet."""

        self._removals = 0
        self._version = 0
        """Version of the newest vector that was read."""

        self._paused_until = 0.0
        self._task: asyncio.Task[None] | None = None

    async def similar(self, query: str) -> Similarities | None:
        """The similarity of all embedded entries to a query; None if there are none, or the embedder fails."""
        await self._refresh()
        if self._matrix is None or not self._rows or time.monotonic() < self._paused_until:
            return None
        import numpy as np

        try:
            async with asyncio.timeout(_QUERY_SECONDS):
                (vector,) = await self._embedder.embed([query[:_MAX_CHARACTERS]])
            if len(vector) != self._size:
                self._notice_size(len(vector))
                self.start()
                return None
            wanted = _normalized(np.asarray([vector], dtype=np.float32))[0]
            values = await asyncio.to_thread(self._matrix[: len(self._rows)].__matmul__, wanted)
        except Exception as error:
            self._pause('search uses words only', error)
            return None
        numbers = list(self._rows)
        count = min(_BEST, len(numbers))
        best: list[int] = np.argpartition(-values, count - 1)[:count].tolist()
        return Similarities(best=[numbers[row] for row in best], values=values, rows=self._rows)

    # Making -----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Embed what is missing, in the background."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._embed_in_background())

    async def _embed_in_background(self) -> None:
        await asyncio.sleep(max(_DELAY, self._paused_until - time.monotonic()))
        await self.embed_some()

    async def embed_some(self, limit: int | None = None) -> None:
        """Embed what is missing. If the embedder fails, that is logged, and it is left alone for a while."""
        try:
            await self.embed_missing(limit)
        except Exception as error:
            self._pause('new entries are found by their words only', error)

    def _pause(self, effect: str, error: Exception) -> None:
        reason = error if str(error) else f'no answer within {_QUERY_SECONDS:.0f} s'
        logger.warning('%s, because the embedder failed: %s', effect, reason)
        self._paused_until = time.monotonic() + _PAUSE_SECONDS

    async def embed_missing(self, limit: int | None = None) -> int:
        """Embed entries that have no vector of this embedder, the newest first. Returns how many."""
        made = 0
        while (limit is None or made < limit) and (texts := await self._database.read(self._missing)):
            texts.sort(key=lambda one: len(one[1]))
            for start in range(0, len(texts), _BATCH):
                batch = texts[start : start + _BATCH]
                vectors = await self._embedder.embed([text for _, text in batch])
                self._notice_size(len(vectors[0]))
                await self._store([number for number, _ in batch], vectors)
            made += len(texts)
        return made

    def _notice_size(self, size: int) -> None:
        """Drop vectors of another length: a server may have another model of the same name now."""
        if size != self._size:
            self._size, self._matrix, self._rows, self._version = size, None, {}, 0

    async def _store(self, numbers: Sequence[int], vectors: Sequence[Sequence[float]]) -> None:
        import numpy as np

        halves = _normalized(np.asarray(vectors, dtype=np.float32)).astype(np.float16)
        made = list(zip(numbers, (half.tobytes() for half in halves), strict=True))

        def work(cursor: Cursor) -> None:
            owner = find_owner(cursor, self._user).key
            kept = read_entries(cursor, owner, numbers)  # an entry may be forgotten meanwhile
            rows = [(number, owner, self._embedder.name, data) for number, data in made if number in kept]
            cursor.many('DELETE FROM {s}vectors WHERE number = ?', [row[:1] for row in rows])
            cursor.many('INSERT INTO {s}vectors (number, owner, embedder, data) VALUES (?, ?, ?, ?)', rows)

        await self._database.run(work)

    def _missing(self, cursor: Cursor) -> list[tuple[int, str]]:
        owner = find_owner(cursor, self._user).key
        sql = """SELECT number FROM {s}entries WHERE owner = ? AND NOT EXISTS
            (SELECT 1 FROM {s}vectors
            WHERE vectors.number = entries.number AND embedder = ? AND (? = 0 OR length(data) = ?))
            ORDER BY number DESC LIMIT ?"""
        size = _BYTES * self._size
        numbers = [number for (number,) in cursor.all(sql, owner, self._embedder.name, size, size, _ROWS)]
        return [(number, _embedded(entry)) for number, entry in read_entries(cursor, owner, numbers).items()]

    async def stop(self) -> None:
        """End the work in the background."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # Reading ----------------------------------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        """Add the vectors that were made since the last search, and drop those of forgotten entries."""
        import numpy as np

        rows = await self._database.read(self._new_rows)
        if rows:
            self._size = self._size or len(rows[-1][2]) // _BYTES
            if fitting := [row for row in rows if len(row[2]) == _BYTES * self._size]:
                added = np.stack([np.frombuffer(data, dtype=np.float16) for _, _, data in fitting]).astype(np.float32)
                self._add([number for _, number, _ in fitting], added)
            self._version = rows[-1][0]

    def _new_rows(self, cursor: Cursor) -> list[tuple[int, int, bytes]]:
        """Version, number and data of the vectors that were not read yet; of all, if some were deleted."""
        owner = find_owner(cursor, self._user)
        if owner.removals != self._removals:
            self._matrix, self._rows, self._version, self._removals = None, {}, 0, owner.removals
        sql = """SELECT version, number, data FROM {s}vectors WHERE owner = ? AND version > ? AND embedder = ?
            ORDER BY version"""
        return cursor.all(sql, owner.key, self._version, self._embedder.name)

    def _add(self, numbers: Sequence[int], added: 'NDArray[np.float32]') -> None:
        import numpy as np

        rows = dict(self._rows)
        for number in numbers:
            rows.setdefault(number, len(rows))
        if self._matrix is None or self._matrix.shape[0] < len(rows):  # with room for as many again
            grown = np.zeros((2 * len(rows), added.shape[1]), dtype=np.float32)
            if self._matrix is not None:
                grown[: len(self._rows)] = self._matrix[: len(self._rows)]
            self._matrix = grown
        self._matrix[[rows[number] for number in numbers]] = added
        self._rows = rows


def _embedded(entry: Entry) -> str:
    """What is embedded of an entry: who says it, if that is a name, and its words."""
    text = f'{entry.role}: {entry.text}' if isinstance(entry, Turn) and entry.role not in PLAIN_ROLES else entry.text
    return text[:_MAX_CHARACTERS]


def _normalized(vectors: 'NDArray[np.float32]') -> 'NDArray[np.float32]':
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)
