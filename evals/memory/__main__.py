"""Measure search: `python -m evals.memory`. Prints recall at 5 and 10 for each kind of question.

The questions are for measuring, not for tuning: a change of the search is judged by public sets too.
"""

import argparse
import asyncio
import importlib
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from evals.memory.chats import ChatSet, Question, make
from habilis.memory import Embedder, Hit, Memory
from habilis.memory.context import is_relevant

NEVER = 'never said'


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of one kind of question."""

    kind: str
    questions: int
    recall_5: float
    """Share of the turns that answer a question, among the first five hits. Of what was never said: silence."""

    recall_10: float


async def measure(chats: ChatSet, embedder: Embedder | None) -> tuple[list[Figures], float]:
    """The figures of all kinds and of all together, and the milliseconds of a search."""
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / 'memory.db', user='eval') as plain:
            for said in chats.turns:
                await plain.add_turn(said.session, said.role, said.text, time=said.time)
        async with Memory(Path(folder) / 'memory.db', user='eval', embedder=embedder) as memory:
            await memory.embed_missing()
            started = time.perf_counter()
            hits = [await memory.search(question.text, limit=10) for question in chats.questions]
            seconds = time.perf_counter() - started
    return figures(chats.questions, hits), 1000 * seconds / len(hits)


def figures(questions: Sequence[Question], hits: Sequence[Sequence[Hit]]) -> list[Figures]:
    """Recall by kind; the last is that of all questions that have an answer."""
    by_kind = defaultdict[str, list[tuple[float, float]]](list)
    for question, found in zip(questions, hits, strict=True):
        if question.gold:
            recalls = _recall(question, found[:5]), _recall(question, found[:10])
            by_kind['all'].append(recalls)
        else:
            silent = float(not any(map(is_relevant, found)))
            recalls = silent, silent
        by_kind[question.kind].append(recalls)
    ordered = [kind for kind in by_kind if kind != 'all'] + ['all']
    return [
        Figures(
            kind=kind,
            questions=len(by_kind[kind]),
            recall_5=sum(one for one, _ in by_kind[kind]) / len(by_kind[kind]),
            recall_10=sum(one for _, one in by_kind[kind]) / len(by_kind[kind]),
        )
        for kind in ordered
    ]


def _recall(question: Question, hits: Sequence[Hit]) -> float:
    texts = {hit.entry.text for hit in hits}
    return sum(text in texts for text in question.gold) / len(question.gold)


def _load(name: str) -> Embedder:
    module, _, attribute = name.partition(':')
    return cast('Embedder', getattr(importlib.import_module(module), attribute)())


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog='python -m evals.memory', description=__doc__)
    parser.add_argument('--embedder', metavar='MODULE:CLASS', help='embedder to use (default: none)')
    parser.add_argument('--seed', type=int, default=1, help='seed of the chats (default: 1)')
    parser.add_argument('--json', action='store_true', help='print JSON')
    given = parser.parse_args()
    chats = make(given.seed)
    rows, milliseconds = asyncio.run(measure(chats, _load(given.embedder) if given.embedder else None))
    if given.json:
        print(json.dumps({'turns': len(chats.turns), 'ms': milliseconds, 'kinds': [asdict(row) for row in rows]}))
        return
    print(f'{len(chats.questions)} questions about {len(chats.turns):,} turns, {milliseconds:.1f} ms per search')
    print(f'{"kind":<16}{"questions":>10}{"recall@5":>10}{"recall@10":>11}')
    for row in rows:
        note = '  (share of questions for which nothing is relevant)' if row.kind == NEVER else ''
        print(f'{row.kind:<16}{row.questions:>10}{row.recall_5:>10.1%}{row.recall_10:>11.1%}{note}')


if __name__ == '__main__':
    main()
