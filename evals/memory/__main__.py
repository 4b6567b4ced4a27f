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
from evals.memory.public import Conversation, read_sets
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
    return [_figures(kind, by_kind[kind]) for kind in ordered]


def _recall(question: Question, hits: Sequence[Hit]) -> float:
    texts = {hit.entry.text for hit in hits}
    return sum(text in texts for text in question.gold) / len(question.gold)


async def measure_public(conversations: Sequence[Conversation], embedder: Embedder | None) -> list[Figures]:
    """Recall of the turns that have the answers, and of their sessions, by kind of question."""
    turns, sessions = list[tuple[str, float, float]](), list[float]()
    for conversation in conversations:
        with tempfile.TemporaryDirectory() as folder:
            async with Memory(Path(folder) / 'memory.db', user='eval', embedder=embedder) as memory:
                named: dict[str, tuple[str, str]] = {}
                for said in conversation.turns:
                    turn = await memory.add_turn(said['session'], said['role'], said['text'], time=said['time'])
                    named[turn.id] = said['id'], said['session']
                await memory.embed_missing()
                for question in conversation.questions:
                    found = [named[hit.entry.id] for hit in await memory.search(question.text, limit=10, type='turn')]
                    gold = set(question.gold)
                    recalls = [len(gold & {id_ for id_, _ in found[:cut]}) / len(gold) for cut in (5, 10)]
                    turns.append((question.kind, recalls[0], recalls[1]))
                    wanted = {session for id_, session in named.values() if id_ in gold}
                    sessions.append(len(wanted & {session for _, session in found}) / len(wanted))
    by_kind = defaultdict[str, list[tuple[float, float]]](list)
    for kind, *recalls in turns:
        for name in (kind, 'all'):
            by_kind[name].append((recalls[0], recalls[1]))
    by_kind['sessions'] = [(one, one) for one in sessions]
    return [_figures(kind, recalls) for kind, recalls in by_kind.items()]


def _figures(kind: str, recalls: Sequence[tuple[float, float]]) -> Figures:
    five, ten = (sum(one) / len(recalls) for one in zip(*recalls, strict=True))
    return Figures(kind=kind, questions=len(recalls), recall_5=five, recall_10=ten)


def _load(name: str) -> Embedder:
    module, _, attribute = name.partition(':')
    return cast('Embedder', getattr(importlib.import_module(module), attribute)())


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog='python -m evals.memory', description=__doc__)
    parser.add_argument('--embedder', metavar='MODULE:CLASS', help='embedder to use (default: none)')
    parser.add_argument('--seed', type=int, default=1, help='seed of the chats (default: 1)')
    parser.add_argument('--json', action='store_true', help='print JSON')
    parser.add_argument('--data', type=Path, metavar='FOLDER', help='public sets, as memory/public.py describes them')
    given = parser.parse_args()
    embedder = _load(given.embedder) if given.embedder else None
    if given.data is not None:
        for name, conversations in read_sets(given.data):
            rows = asyncio.run(measure_public(conversations, embedder))
            shown = {'set': name, 'kinds': [asdict(row) for row in rows]}
            print(json.dumps(shown)) if given.json else _print(name, rows)
        return
    chats = make(given.seed)
    rows, milliseconds = asyncio.run(measure(chats, embedder))
    if given.json:
        print(json.dumps({'turns': len(chats.turns), 'ms': milliseconds, 'kinds': [asdict(row) for row in rows]}))
        return
    _print(f'{len(chats.questions)} questions about {len(chats.turns):,} turns, {milliseconds:.1f} ms per search', rows)


def _print(title: str, rows: Sequence[Figures]) -> None:
    print(title)
    print(f'{"kind":<16}{"questions":>10}{"recall@5":>10}{"recall@10":>11}')
    for row in rows:
        note = '  (share of questions for which nothing is relevant)' if row.kind == NEVER else ''
        print(f'{row.kind:<16}{row.questions:>10}{row.recall_5:>10.1%}{row.recall_10:>11.1%}{note}')


if __name__ == '__main__':
    main()
