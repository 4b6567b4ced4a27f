"""Generated conversations that are like real ones where it matters for search: few words are very common, turns are
short or long, a session keeps to its subjects, and people write in several languages.
"""

import json
import math
import random
from collections.abc import Iterator, Sequence

_VOCABULARY = 30_000
_SUBJECT_WORDS = 60
_LANGUAGES = (
    'the of and to a in is it you that he was for on are with as i his they be at one have this'.split(),
    'der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an'.split(),
    'и в не на я быть он с что а по это она этот к но они мы весь который из у то за'.split(),
)
_SYLLABLES = (
    'ba de fi go hu ka le mi no pu ra se ti vo wu ya ze cho sha thi ing er ly tion'.split(),
    'ge ver schl ung heit kei er en bau hof stra mü lö zä ken ber gen tal wei nacht'.split(),
    'ба го ду ле ми но по ра се ти во щу ча жи кра сто пре ние ост ка'.split(),
)
_SHARES = (0.7, 0.2, 0.1)


class Conversations:
    """Sessions of turns, the same for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)
        self.turns: list[str] = []

    def export(self, count: int) -> Iterator[str]:
        """Lines that `Memory.import_lines` takes, with this many turns."""
        yield json.dumps({'habilis': 'memory', 'version': 1})
        session = 0
        while len(self.turns) < count:
            session += 1
            language = self._chance.choices(range(len(_LANGUAGES)), _SHARES)[0]
            subjects = [self._rank() for _ in range(_SUBJECT_WORDS)]
            for position in range(1, min(self._turns(), count - len(self.turns)) + 1):
                number, text = len(self.turns), self._text(language, subjects)
                self.turns.append(text)
                role = ('user', 'assistant')[position % 2]
                turn = {'id': f'b{number:08}', 'session': f's{session}', 'role': role, 'text': text}
                yield json.dumps({'turn': {**turn, 'time': float(number * 60), 'position': position}})

    def questions(self, count: int) -> Sequence[str]:
        """Questions with some words of a turn that was said, among words that are in most questions."""
        return [self._question(self._chance.choice(self.turns)) for _ in range(count)]

    def _question(self, text: str) -> str:
        words = list(dict.fromkeys(text.split()))
        about = self._chance.sample(words, min(len(words), self._chance.randint(2, 7)))
        return f'what did we say about {" ".join(about)} last time'

    def _turns(self) -> int:
        return 2 + int(self._chance.expovariate(1 / 30))

    def _rank(self) -> int:
        return int(_VOCABULARY ** self._chance.random())

    def _text(self, language: int, subjects: Sequence[int]) -> str:
        """A turn: half of the words are the smallest of the language, a quarter is about the subjects."""
        length = max(2, min(600, int(math.exp(self._chance.gauss(3.2, 1.0)))))
        return ' '.join(self._word(language, subjects) for _ in range(length))

    def _word(self, language: int, subjects: Sequence[int]) -> str:
        kind = self._chance.random()
        if kind < 0.5:
            return _LANGUAGES[language][int(len(_LANGUAGES[language]) * self._chance.random() ** 2)]
        return _spelled(self._chance.choice(subjects) if kind < 0.75 else self._rank(), _SYLLABLES[language])


def _spelled(rank: int, syllables: Sequence[str]) -> str:
    parts: list[str] = []
    while rank:
        rank, rest = divmod(rank, len(syllables))
        parts.append(syllables[rest])
    return ''.join(parts)
