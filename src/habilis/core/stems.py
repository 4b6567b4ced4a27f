"""Words of a text in the form in which they are compared: without stop words, lower case, reduced to their stems."""

import re
import sqlite3
import threading
from collections.abc import Iterable

from habilis.core.closing import close_with

STOP_WORDS = frozenset(
    'a an and are as at be by can do for from how i in into is it its me my of on or please the this to what when '
    'which with you your'.split()
)
"""Words that say nothing about the content of an English text. A caller may have more of them."""

_STEMMER = """
CREATE VIRTUAL TABLE one USING fts5(text, tokenize='porter unicode61');
CREATE VIRTUAL TABLE stems USING fts5vocab('one', 'instance');
"""
_WORD = re.compile(r'[^\W_]+')
_WITHOUT_SPACES = re.compile('[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+')
"""Runs of Chinese, Japanese and Korean, which have no spaces between words, or few: compared by pairs of characters."""

_MAX_KNOWN = 200_000
_MAX_WORD = 60
"""Longer words, such as encoded data, are compared by their first characters."""


class Stemmer:
    """Uses the stemmer of SQLite, one word at a time, and remembers the results. Safe to use by several threads."""

    def __init__(self, stop_words: Iterable[str] = STOP_WORDS) -> None:
        self._stop_words = frozenset(stop_words)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(':memory:', check_same_thread=False)
        close_with(self, self._db)
        self._db.executescript(_STEMMER)
        self._stems: dict[str, str] = {}

    def terms(self, text: str) -> list[str]:
        """The stems of all words in their order: `titles` is `titl`."""
        with self._lock:
            words = [word[:_MAX_WORD] for word in _words(text.lower()) if word not in self._stop_words]
            return [stem for word in words if (stem := self._stem(word))]

    def _stem(self, word: str) -> str:
        stem = self._stems.get(word)
        if stem is None:
            self._db.execute('DELETE FROM one')
            self._db.execute('INSERT INTO one VALUES (?)', (word,))
            row = self._db.execute('SELECT term FROM stems').fetchone()
            if len(self._stems) >= _MAX_KNOWN:
                self._stems.clear()
            stem = self._stems[word] = row[0] if row else ''
        return stem


def _words(text: str) -> Iterable[str]:
    for word in _WORD.findall(text):
        if word.isascii() or not _WITHOUT_SPACES.search(word):
            yield word
        else:
            yield from _pairs(word)


def _pairs(word: str) -> Iterable[str]:
    """The parts of a word: pairs of neighbouring characters where there are no spaces, the rest as it is."""
    end = 0
    for found in _WITHOUT_SPACES.finditer(word):
        if found.start() > end:
            yield word[end : found.start()]
        run, end = found[0], found.end()
        yield from (run[number : number + 2] for number in range(max(1, len(run) - 1)))
    if end < len(word):
        yield word[end:]
