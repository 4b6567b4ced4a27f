"""What goes from the memory into a prompt: chosen by relevance within a budget, nothing twice."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from habilis.memory.contract import Entry, Fact, Hit, Turn
from habilis.memory.entries import digest_of, plain_words

STANDING = ('instruction', 'preference')
"""Kinds of facts that matter whatever the task is about."""

MIN_WORDS = 0.25
"""Share of the task's weight that the words of an entry must match. A match of all words is about 0.5."""

MIN_WORDS_OF_TWO = 0.12
"""Or a smaller share, of at least two words: a long task has many."""

MIN_NEARBY = 0.5
"""Or those of the turn before or after it, as with a question and its answer."""

MIN_MEANING = 0.5
"""Or its similarity by the embedder."""

MAX_CHARACTERS = 600
"""Of one entry; the rest is left out."""

_CHARACTERS_PER_TOKEN = 4
_SENTENCE = re.compile(r'[^.!?\n。！？؟]*[^\s.!?。！？؟][^.!?\n。！？؟]*[.!?。！？؟]?')
_ASKING = '?？؟'


@dataclass(frozen=True, kw_only=True)
class Recalled:
    """One entry of a context."""

    entry: Entry
    text: str
    """As the model sees it."""

    tokens: int
    why: str
    hit: Hit | None = None
    """None for facts that matter for every task."""


@dataclass(frozen=True, kw_only=True)
class MemoryContext:
    """What the memory has for a task."""

    items: tuple[Recalled, ...]
    tokens: int
    """An estimate: 4 characters each."""

    @property
    def text(self) -> str:
        """For the prompt; empty if there is nothing."""
        return '\n'.join(item.text for item in self.items)

    @property
    def ids(self) -> frozenset[str]:
        """Ids of the entries, not to be recalled again."""
        return frozenset(item.entry.id for item in self.items)


def choose(standing: Sequence[Fact], hits: Sequence[Hit], budget: int, visible: str) -> MemoryContext:
    """Take standing facts for up to half of the budget, then relevant entries, best first.

    Nothing is taken whose words are in `visible`, what the model sees already.
    """
    chosen: list[Recalled] = []
    seen = _Seen(visible)
    tokens = 0
    for most, items in ((budget // 2, _standing(standing)), (budget, _relevant(hits))):
        for item in items:
            if tokens + item.tokens <= most and seen.is_new(item.entry):
                chosen.append(item)
                tokens += item.tokens
    return MemoryContext(items=tuple(chosen), tokens=tokens)


class _Seen:
    """Notices what the model has seen: the same words, or the turn that a fact was drawn from."""

    def __init__(self, visible: str) -> None:
        self._visible = plain_words(visible)
        self._ids: set[str] = set()
        self._texts: set[str] = set()

    def is_new(self, entry: Entry) -> bool:
        """Whether it is new; from now on it is not."""
        ids = {entry.id, entry.source} if isinstance(entry, Fact) and entry.source else {entry.id}
        digest = digest_of(entry.text)
        if ids & self._ids or digest in self._texts or plain_words(_shown(entry)) in self._visible:
            return False
        self._ids |= ids
        self._texts.add(digest)
        return True


def _standing(facts: Iterable[Fact]) -> Iterator[Recalled]:
    for fact in sorted(facts, key=lambda one: -one.time):
        yield _recalled(fact, f'{fact.kind}: applies to every task')


def _relevant(hits: Iterable[Hit]) -> Iterator[Recalled]:
    """Relevant ones, best first. Questions are last: who has asked something before has not said it."""
    relevant = [hit for hit in hits if is_relevant(hit)]
    for hit in sorted(relevant, key=lambda hit: _only_asks(hit.entry)):
        yield _recalled(hit.entry, describe(hit), hit)


def _only_asks(entry: Entry) -> bool:
    sentences = _SENTENCE.findall(entry.text)
    return isinstance(entry, Turn) and bool(sentences) and all(sentence[-1] in _ASKING for sentence in sentences)


def is_relevant(hit: Hit) -> bool:
    """Whether a hit is relevant enough for a prompt. The best hit of a search need not be."""
    by_words = hit.words >= MIN_WORDS or (len(hit.matched) > 1 and hit.words >= MIN_WORDS_OF_TWO)
    return by_words or hit.nearby >= MIN_NEARBY or (hit.meaning or 0.0) >= MIN_MEANING


def describe(hit: Hit) -> str:
    """Why an entry was found, in one line."""
    reasons = [f'{hit.words:.0%} of the words ({", ".join(hit.matched)})'] if hit.matched else []
    if hit.nearby:
        reasons.append(f'next to a turn with {hit.nearby:.0%}')
    if hit.meaning is not None:
        reasons.append(f'meaning {hit.meaning:.2f}')
    return f'score {hit.score:.2f}: ' + '; '.join(reasons)


def _recalled(entry: Entry, why: str, hit: Hit | None = None) -> Recalled:
    day = time.strftime('%Y-%m-%d', time.localtime(entry.time))
    label = f'{entry.role}, {day}, session {entry.session}' if isinstance(entry, Turn) else f'{entry.kind}, {day}'
    shown = _shown(entry)
    text = f'- [{label}] {shown}{"" if len(shown) < MAX_CHARACTERS else "…"}'
    return Recalled(entry=entry, text=text, tokens=len(text) // _CHARACTERS_PER_TOKEN + 1, why=why, hit=hit)


def _shown(entry: Entry) -> str:
    """Its words, up to the length that is given to a model."""
    return ' '.join(entry.text.split())[:MAX_CHARACTERS]
