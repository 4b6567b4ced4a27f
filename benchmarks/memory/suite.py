"""All measurements of `python -m benchmarks memory`."""

import os
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measurement import load_average, summarize
from benchmarks.report import Progress, Report, Row, Target, make_report, time_row
from habilis.memory import Memory

SEARCH_TARGET = 20.0
APPEND_TARGET = 5.0
READY_TARGET = 800.0
FIRST_TOKEN_TARGET = 30.0
_USERS = 5
_SYLLABLES = 'ba de fi go hu ka le mi no pu ra se ti vo wu ya ze cho sha thi'.split()


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Sizes and number of repeats."""

    memories: int
    searches: int
    appends: int
    foreign_searches: int
    """Searches whose hits must all be of the user."""

    chats: int
    """How often the chat is started; 0 for never."""


FULL = Effort(memories=100_000, searches=200, appends=300, foreign_searches=10_000, chats=5)
QUICK = Effort(memories=10_000, searches=50, appends=100, foreign_searches=1_000, chats=2)


async def measure(*, quick: bool, progress: Progress) -> Report:
    """Run all measurements. Takes some minutes; under one minute if quick."""
    effort = QUICK if quick else FULL
    load = load_average()
    with tempfile.TemporaryDirectory(prefix='habilis-', ignore_cleanup_errors=True) as folder:
        async with Memory(Path(folder) / 'memory.db', user='bench') as memory:
            progress(f'filling a memory with {effort.memories:,} turns')
            await memory.import_lines(_lines(effort.memories))
            progress('searches')
            search = [await _search_time(memory, query) for query in _queries(effort.searches)]
            progress('appends')
            append = [await _append_time(memory, text) for text in _queries(effort.appends)]
            progress('context for a task')
            context = [await _context_time(memory, query) for query in _queries(effort.searches)]
        progress('separation of users')
        foreign = await _foreign(Path(folder) / 'users.db', effort.foreign_searches)
        progress('chat on a terminal')
        chat = await _chat_rows(Path(folder) / 'chat', effort.chats)
    size = f'{effort.memories:,} memories'
    rows = [
        time_row('search', f'search over {size}', summarize(search), SEARCH_TARGET),
        time_row('append', f'append to {size}', summarize(append), APPEND_TARGET),
        time_row('context', f'context for a task from {size}', summarize(context)),
        Row(
            key='foreign',
            label=f'hits of another user in {effort.foreign_searches:,} searches',
            unit='',
            value=float(foreign),
            target=Target(bound=0.0),
        ),
        *chat,
    ]
    return make_report(rows, load=load, quick=quick)


async def _chat_rows(folder: Path, rounds: int) -> list[Row]:
    if not rounds:
        return []
    if os.name != 'posix':
        return [Row(key='chat_ready', label='chat ready to type', unit='ms', note='needs a terminal of POSIX')]
    from benchmarks.memory.chat import chat_times

    times = await chat_times(folder, rounds)
    return [
        time_row('chat_ready', 'chat ready to type, from a cold command', times.ready, READY_TARGET),
        time_row('chat_first_token', 'first word on the screen, added to the agent', times.adds, FIRST_TOKEN_TARGET),
    ]


async def _search_time(memory: Memory, query: str) -> float:
    started = time.perf_counter()
    await memory.search(query)
    return time.perf_counter() - started


async def _append_time(memory: Memory, text: str) -> float:
    started = time.perf_counter()
    await memory.add_turn('bench', 'user', text)
    return time.perf_counter() - started


async def _context_time(memory: Memory, query: str) -> float:
    started = time.perf_counter()
    await memory.context_for(query)
    return time.perf_counter() - started


async def _foreign(path: Path, searches: int) -> int:
    """Hits that belong to another user, of searches by several users in one file."""
    chance = random.Random(2)
    users = [Memory(path, user=f'user{number}') for number in range(_USERS)]
    for user in users:
        for number, text in enumerate(_queries(40, seed=3)):
            await user.add_turn(f's{number % 4}', 'user', f'{user.user} {text}')
            await user.add_fact(f'{user.user} {text} (fact)')
    wrong = 0
    for query in _queries(searches, seed=3):
        user = chance.choice(users)
        wrong += sum(not hit.entry.text.startswith(f'{user.user} ') for hit in await user.search(query))
    for user in users:
        await user.close()
    return wrong


def _words(chance: random.Random, count: int) -> list[str]:
    """Words as in a text: few are very common, most are rare."""
    ranks = [int(20_000 ** chance.random()) for _ in range(count)]
    return [_word(rank) for rank in ranks]


def _word(rank: int) -> str:
    parts: list[str] = []
    while rank:
        rank, rest = divmod(rank, len(_SYLLABLES))
        parts.append(_SYLLABLES[rest])
    return ''.join(parts)


def _queries(count: int, seed: int = 1) -> Sequence[str]:
    chance = random.Random(seed)
    return [' '.join(_words(chance, 6)) for _ in range(count)]


def _lines(count: int) -> Sequence[str]:
    """An export with this many turns, in sessions of 40."""
    chance = random.Random(0)
    lines = ['{"habilis":"memory","version":1}']
    for number in range(count):
        text = ' '.join(_words(chance, 25))
        lines.append(
            f'{{"turn":{{"id":"b{number:08}","session":"s{number // 40}","role":"user","text":"{text}",'
            f'"time":{number}.0,"position":{number % 40 + 1}}}}}'
        )
    return lines
