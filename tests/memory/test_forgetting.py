"""What is forgotten is gone: from search, from the lists, and from the bytes of the files."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from habilis.core.errors import RememberError, StoreUnavailable
from habilis.memory import Memory
from tests.memory.conftest import Open
from tests.memory.sample import HashEmbedder

SECRET = 'Zanzibarquartz'


def bytes_of(folder: Path) -> bytes:
    return b''.join(path.read_bytes() for path in folder.iterdir()).lower()


async def fill(memory: Memory, count: int = 200) -> None:
    for number in range(count):
        text = f'turn {number} about topic{number} and the weather'
        await memory.add_turn(f's{number % 3}', 'user', text, time=float(number))


async def test_forgotten_words_are_not_in_the_files_any_more(tmp_path: Path) -> None:
    folder = tmp_path / 'data'
    async with Memory(folder / 'memory.db', embedder=HashEmbedder()) as memory:
        await fill(memory)
        turn = await memory.add_turn('chat', 'user', f'the code is {SECRET}, or {SECRET}s in short')
        await memory.add_fact(f'The code is {SECRET}', source=turn.id)
        task = await memory.add_task(f'change {SECRET}')
        await memory.embed_missing()
        await fill(memory, 20)
        assert SECRET.lower().encode() in bytes_of(folder)
        assert b'zanzibarquartz' in bytes_of(folder)
        forgotten = await memory.forget(query=SECRET)
        assert [SECRET in entry.text for entry in forgotten] == [True, True]
        await memory.remove_task(task.number)
        assert b'zanzibar' not in bytes_of(folder)
        assert [hit for hit in await memory.search(f'{SECRET} code') if hit.words or hit.nearby] == []
        assert len(await memory.search('weather', limit=1000)) == 220
    assert b'zanzibar' not in bytes_of(folder)


async def test_forgotten_words_are_gone_although_another_process_has_the_file_open(tmp_path: Path) -> None:
    folder = tmp_path / 'data'
    async with Memory(folder / 'memory.db') as memory, Memory(folder / 'memory.db') as other:
        await fill(memory, 50)
        await other.add_turn('chat', 'user', SECRET)
        await other.search(SECRET)
        assert len(await memory.forget(query=SECRET)) == 1
        assert b'zanzibar' not in bytes_of(folder)
        assert await other.search(SECRET) == []


async def test_all_before_a_date_is_forgotten(memory: Memory, open_memory: Open) -> None:
    await fill(memory, 20)
    await open_memory('bob').add_turn('chat', 'user', 'an old turn of bob', time=1.0)
    would = await memory.find_to_forget(before=15.0)
    assert len(await memory.turns()) == 20
    assert await memory.forget(before=15.0) == would
    assert [turn.time for turn in await memory.turns()] == [15.0, 16.0, 17.0, 18.0, 19.0]
    assert await memory.search('topic3') == []
    assert len(await memory.search('topic17')) > 0
    assert len(await open_memory('bob').turns()) == 1


async def test_a_turn_is_forgotten_with_the_facts_that_were_drawn_from_it(memory: Memory) -> None:
    turn = await memory.add_turn('chat', 'user', 'I live in Lisbon, no, in Porto')
    old = await memory.add_fact('Lives in Lisbon')
    new = await memory.add_fact('Lives in Porto', source=turn.id, replaces=old.id)
    other = await memory.add_fact('Likes tea')
    assert {entry.id for entry in await memory.forget(turn.id)} == {turn.id, old.id, new.id}
    assert await memory.facts(history=True) == [other]


async def test_a_session_is_forgotten_as_a_whole(memory: Memory) -> None:
    await fill(memory, 9)
    assert len(await memory.forget(session='s1')) == 3
    assert {one.session for one in await memory.sessions()} == {'s0', 's2'}
    assert (await memory.add_turn('s1', 'user', 'again')).position == 1


async def test_words_must_all_match(memory: Memory) -> None:
    await memory.add_turn('chat', 'user', 'red apples')
    green = await memory.add_turn('chat', 'user', 'green apples')
    assert await memory.forget(query='apple green') == [green]
    assert await memory.forget(query='the of and') == []
    assert [turn.text for turn in await memory.turns()] == ['red apples']


async def test_what_to_forget_must_be_clear(memory: Memory) -> None:
    turn = await memory.add_turn('chat', 'user', 'x')
    for chosen in ({}, {'before': 5.0, 'query': 'x'}):
        with pytest.raises(RememberError, match='exactly one of'):
            await memory.forget(**chosen)  # pyright: ignore[reportArgumentType]
    with pytest.raises(RememberError, match='no entry has the id'):
        await memory.forget(turn.id, 'ffff00001111')
    assert await memory.turns() == [turn]


async def test_bytes_that_could_not_be_removed_are_removed_by_the_next_call(tmp_path: Path) -> None:
    folder = tmp_path / 'data'
    path = folder / 'memory.db'
    async with Memory(path) as memory:
        await fill(memory, 20)
        await memory.add_turn('chat', 'user', f'the code is {SECRET}')
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute('BEGIN')
            reader.execute('SELECT count(*) FROM entries').fetchone()
            with pytest.raises(StoreUnavailable, match='may still have its bytes'):
                await memory.forget(query=SECRET)
        assert await memory.search(SECRET) == []
        assert b'zanzibar' in bytes_of(folder)
        assert await memory.forget(query=SECRET) == []
        assert b'zanzibar' not in bytes_of(folder)


async def test_bytes_that_could_not_be_removed_are_removed_at_the_end_of_a_later_process(tmp_path: Path) -> None:
    folder = tmp_path / 'data'
    path = folder / 'memory.db'
    async with Memory(path) as memory:
        await memory.add_turn('chat', 'user', f'the code is {SECRET}')
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute('BEGIN')
            reader.execute('SELECT count(*) FROM entries').fetchone()
            with pytest.raises(StoreUnavailable):
                await memory.forget(query=SECRET)
            await memory.close()
    async with Memory(path) as memory:
        await memory.within('work').add_turn('chat', 'user', 'something else')
    assert b'zanzibar' not in bytes_of(folder)
