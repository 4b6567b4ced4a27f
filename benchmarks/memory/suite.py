"""All measurements of `python -m benchmarks memory`."""

import os
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measurement import load_average, summarize
from benchmarks.memory.texts import Conversations
from benchmarks.report import Progress, Report, Row, Target, make_report, time_row
from habilis.memory import Memory

SEARCH_TARGET = 20.0
APPEND_TARGET = 5.0
READY_TARGET = 800.0
FIRST_TOKEN_TARGET = 30.0
_USERS = 5


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
            talks = Conversations()
            await memory.import_lines(list(talks.export(effort.memories)))
            progress('searches')
            search = [await _search_time(memory, query) for query in talks.questions(effort.searches)]
            progress('appends')
            append = [await _append_time(memory, text) for text in talks.questions(effort.appends)]
            progress('context for a task')
            context = [await _context_time(memory, query) for query in talks.questions(effort.searches)]
        progress('separation of users')
        foreign = await _foreign(Path(folder) / 'users.db', effort.foreign_searches)
        progress('chat on a terminal')
        chat = await _chat_rows(Path(folder) / 'chat', effort.chats)
    size = f'{effort.memories:,} memories'
    rows = [
        time_row('search', f'search over {size}', summarize(search), SEARCH_TARGET),
        time_row('append', f'append to {size}', summarize(append), APPEND_TARGET),
        time_row('context', f'context for a task from {size}', summarize(context), SEARCH_TARGET),
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
    await memory.context_for(query, session='s1')
    return time.perf_counter() - started


async def _foreign(path: Path, searches: int) -> int:
    """Hits that belong to another user, of searches by several users in one file."""
    chance, talks = random.Random(2), Conversations(seed=3)
    _ = list(talks.export(40))
    users = [Memory(path, user=f'user{number}') for number in range(_USERS)]
    for user in users:
        for number, text in enumerate(talks.turns):
            await user.add_turn(f's{number % 4}', 'user', f'{user.user} {text}')
            await user.add_fact(f'{user.user} {text} (fact)')
    wrong = 0
    for query in talks.questions(searches):
        user = chance.choice(users)
        wrong += sum(not hit.entry.text.startswith(f'{user.user} ') for hit in await user.search(query))
    for user in users:
        await user.close()
    return wrong
