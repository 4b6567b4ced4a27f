"""A site about invented companies, people, towns and rivers, and 30 questions about it. The same for the same seed.

Each fact is on one page only, and names are made of syllables, so that no model knows an answer.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

COUNT = 10
"""Companies, and as many people, towns and rivers."""

_FIRST = 'Bra Dol Fen Gar Hul Jor Kel Lim Mor Nev Ost Pel Quin Rav Sil Tor Ulm Ven Wex Yar'.split()
_LAST = 'bek dan fir gol lund mar nik ros sten tau vik zel'.split()


@dataclass(frozen=True, kw_only=True)
class ResearchQuestion:
    """A question with its exact answer."""

    id: str
    text: str
    answer: str
    pages: tuple[str, ...]
    """The files that are needed, in the order of the way to the answer, which is on the last one."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """Pages by file name, and questions about them."""

    pages: Mapping[str, str]
    questions: tuple[ResearchQuestion, ...]

    def write(self, folder: Path) -> None:
        """Write the pages as files."""
        for name, text in self.pages.items():
            (folder / name).write_text(text, encoding='utf-8')


def make_site(seed: int = 1) -> Site:
    """The site of a seed."""
    chance = random.Random(seed)
    names = [first + last for first in _FIRST for last in _LAST]
    chance.shuffle(names)
    pages: dict[str, str] = {}
    questions: list[ResearchQuestion] = []
    for number in range(COUNT):
        company, person, family, town, river = names[5 * number : 5 * number + 5]
        born, length = chance.randint(1850, 1990), chance.randint(40, 900)
        goods = chance.choice(['clocks', 'tiles', 'ropes', 'lamps', 'gloves'])
        founder = f'{person} {family}'
        files = tuple(f'{name.lower()}.md' for name in (company, family, town, river))
        pages |= {
            files[
                0
            ]: f'# {company} Works\n\n{company} Works makes {goods}.\n\n{company} Works was founded by {founder}.\n',
            files[
                1
            ]: f'# {founder}\n\n{founder} was born in the town of {town}.\n\n{founder} was born in the year {born}.\n',
            files[2]: f'# {town}\n\n{town} is a town with a market.\n\nThe river {river} flows through {town}.\n',
            files[
                3
            ]: f'# The river {river}\n\nThe river {river} has many mills.\n\nThe river {river} is {length} km long.\n',
        }
        who = f'the founder of {company} Works'
        questions += [
            ResearchQuestion(
                id=f'{number + 1}-year', text=f'In which year was {who} born?', answer=str(born), pages=files[:2]
            ),
            ResearchQuestion(
                id=f'{number + 1}-river',
                text=f'Which river flows through the town where {who} was born?',
                answer=river,
                pages=files[:3],
            ),
            ResearchQuestion(
                id=f'{number + 1}-length',
                text=f'How many km long is the river that flows through the town where {who} was born?',
                answer=str(length),
                pages=files,
            ),
        ]
    return Site(pages=pages, questions=tuple(questions))
