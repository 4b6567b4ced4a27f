"""Search by meaning: how similar a query is to what tools do, and to the requests that they were used for."""

import contextlib
import hashlib
import logging
import sqlite3
import threading
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_NEW = 200
"""Texts that one search embeds at most; those of a large library are embedded by several."""

NOISE = 0.2
"""Similarity that texts about different things may have."""

_BATCH = 32
_SCHEMA = 'CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, data BLOB) WITHOUT ROWID'
_log = logging.getLogger(__name__)


class TextEmbedder(Protocol):
    """Turns texts into vectors."""

    name: str

    def embed_now(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """One vector per text, all of the same length."""
        ...


class Meanings:
    """Vectors of texts, kept in a file that can be deleted at any time."""

    def __init__(self, path: Path, embedder: TextEmbedder) -> None:
        self._path = path
        self._embedder = embedder
        self._lock = threading.Lock()
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def similar(self, query: str, texts: Mapping[str, Sequence[str]]) -> dict[str, float]:
        """The similarity of a query to the most similar text of each tool, if there is any. Search works without."""
        wanted = [text for some in texts.values() for text in some]
        if not wanted:
            return {}
        try:
            with self._lock:
                self._add(wanted)
                [vector] = self._embed([query])
                return {name: score for name, some in texts.items() if (score := self._score(vector, some)) > NOISE}
        except Exception as error:  # of the embedder, or of a read-only folder
            _log.warning('search in %s uses words only: %s', self._path.parent, error)
            return {}

    def _score(self, vector: 'NDArray[np.float32]', texts: Sequence[str]) -> float:
        return max((float(vector @ self._vectors[text]) for text in texts if text in self._vectors), default=0.0)

    def _add(self, texts: Sequence[str]) -> None:
        """Read or make the vectors of texts that are not known yet."""
        if not (missing := list(dict.fromkeys(text for text in texts if text not in self._vectors))):
            return
        import numpy as np

        with self._open() as db:
            for text in missing:
                row = db.execute('SELECT data FROM vectors WHERE text = ?', (self._key(text),)).fetchone()
                if row is not None:
                    self._vectors[text] = np.frombuffer(row[0], dtype=np.float32)
            new = sorted((text for text in missing if text not in self._vectors), key=len)[:MAX_NEW]
            for start in range(0, len(new), _BATCH):
                batch = new[start : start + _BATCH]
                made = dict(zip(batch, self._embed(batch), strict=True))
                rows = [(self._key(text), vector.tobytes()) for text, vector in made.items()]
                db.executemany('INSERT OR REPLACE INTO vectors VALUES (?, ?)', rows)
                self._vectors |= made

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f'{self._embedder.name}\n{text}'.encode('utf-8', 'replace')).digest()

    def _embed(self, texts: list[str]) -> 'NDArray[np.float32]':
        import numpy as np

        vectors = np.asarray(self._embedder.embed_now(texts), dtype=np.float32)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    @contextlib.contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(self._path, timeout=10)) as db, db:
            db.execute('PRAGMA journal_mode = TRUNCATE')  # others change the time of the folder, and so age the index
            db.execute(_SCHEMA)
            yield db
