"""Words of a text in the form in which they are compared: without stop words, lower case, reduced to their stems."""

import itertools
import re
import sqlite3
import threading
import unicodedata
from collections.abc import Collection, Iterable

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
_IRREGULAR = """
became:become began:begun:begin bent:bend bit:bitten:bite blew:blown:blow bought:buy broke:broken:break brought:bring
built:build burnt:burn came:come caught:catch chose:chosen:choose dealt:deal dove:dive drank:drunk:drink drew:drawn:draw
drove:driven:drive dreamt:dream ate:eaten:eat fell:fallen:fall fed:feed felt:feel fought:fight flew:flown:fly
forgot:forgotten:forget forgave:forgiven:forgive froze:frozen:freeze got:gotten:get gave:given:give went:gone:go
grew:grown:grow hung:hang heard:hear hid:hidden:hide held:hold kept:keep knew:known:know laid:lay led:lead learnt:learn
left:leave lent:lend lost:lose made:make meant:mean met:meet paid:pay ran:run rode:ridden:ride rang:rung:ring
rose:risen:rise said:say saw:seen:see sold:sell sent:send shook:shaken:shake shone:shine shot:shoot showed:shown:show
sang:sung:sing sank:sunk:sink sat:sit slept:sleep spoke:spoken:speak spent:spend stood:stand stole:stolen:steal
stuck:stick struck:strike swam:swum:swim swore:sworn:swear took:taken:take taught:teach told:tell thought:think
threw:thrown:throw understood:understand woke:woken:wake wore:worn:wear won:win wrote:written:write
children:child feet:foot geese:goose knives:knife leaves:leaf lives:life men:man mice:mouse people:person teeth:tooth
wives:wife women:woman
"""
"""English forms that no stemmer reduces; the last of each group is the one that stands for all."""

_BASE_FORMS = {form: group[-1] for line in _IRREGULAR.split() for group in [line.split(':')] for form in group[:-1]}
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*|[\u2600-\u27bf\U0001f000-\U0001faff]")
_ENDINGS = frozenset({'d', 'll', 'm', 're', 's', 't', 've'})
"""What may follow an apostrophe and is no part of a name."""

_WITHOUT_SPACES = re.compile(
    '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+'
)
"""Runs of Chinese, Japanese, Korean, Thai and others, which have no spaces between words, or few: compared by their
characters and pairs of them."""

_KEPT_MARKS = '\u3099\u309a'
"""Of Japanese, where they make another letter."""

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

    def terms(self, text: str, limit: int | None = None) -> list[str]:
        """The stems of all words in their order: `titles` is `titl`. At most those of the first `limit` words."""
        found = (word[:_MAX_WORD] for word in _words(_without_marks(text)) if word not in self._stop_words)
        words = [_BASE_FORMS.get(word, word) for word in itertools.islice(found, limit)]
        with self._lock:
            if len(self._stems) >= _MAX_KNOWN:
                self._stems.clear()
            self._learn({word for word in words if word not in self._stems})
            return [stem for word in words if (stem := self._stems[word])]

    def _learn(self, words: Collection[str]) -> None:
        """Have the stems of new words made, all at once."""
        if not words:
            return
        numbered = list(enumerate(words, 1))
        self._db.execute('DELETE FROM one')
        self._db.executemany('INSERT INTO one (rowid, text) VALUES (?, ?)', numbered)
        found = dict(self._db.execute('SELECT doc, term FROM stems ORDER BY doc, offset DESC'))  # the first of each
        self._stems.update({word: found.get(number, '') for number, word in numbered})


def folded(text: str) -> str:
    """A text in the form in which it is compared: one form of each letter, no case, nothing that cannot be seen."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize('NFKC', text).casefold()
    return ''.join(character for character in plain if unicodedata.category(character) != 'Cf')


def _without_marks(text: str) -> str:
    """The same without accents and other marks, which people leave out."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize('NFKD', folded(text))
    bare = (one for one in parts if unicodedata.category(one)[0] != 'M' or one in _KEPT_MARKS)
    return unicodedata.normalize('NFC', ''.join(bare))


def _words(text: str) -> Iterable[str]:
    for found in _WORD.findall(text):
        parts = re.split("['\u2019]", found)
        if len(parts) > 1 and parts[-1] not in _ENDINGS:  # O'Brien is also OBrien
            yield ''.join(parts)
        for word in parts:
            if word.isascii():
                yield word
            elif _WITHOUT_SPACES.search(word):
                yield from _pairs(word)
            else:
                yield word if word.isalnum() else f'u{ord(word):x}'  # an emoji, which no index takes


def _pairs(word: str) -> Iterable[str]:
    """The parts of a word: characters and pairs of neighbours where there are no spaces, the rest as it is."""
    end = 0
    for found in _WITHOUT_SPACES.finditer(word):
        if found.start() > end:
            yield word[end : found.start()]
        run, end = found[0], found.end()
        yield from run
        yield from (run[number : number + 2] for number in range(len(run) - 1))
    if end < len(word):
        yield word[end:]
