"""Turns and facts are kept verbatim and in order, belong to one user, and can be exported and imported."""

import asyncio
import contextlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from habilis.core.errors import DocumentError, HabilisError, RememberError, SettingsError, StoreUnavailable
from habilis.memory import Memory
from tests.cases import each_case
from tests.memory.conftest import Open

ODD = 'NUL \0, a lone surrogate \ud800, "quotes", \r\n lines, 日本語, 👩‍🚀, %s ? {s}'


async def test_turns_are_kept_verbatim_and_in_order_even_within_one_moment(memory: Memory, open_memory: Open) -> None:
    texts = [ODD, '', *(f'number {number}' for number in range(30))]
    for text in texts:
        await memory.add_turn('chat', 'user', text, time=1000.0)
    again = open_memory()
    turns = await again.turns('chat')
    assert [turn.text for turn in turns] == texts
    assert [turn.position for turn in turns] == list(range(1, len(texts) + 1))
    assert {turn.time for turn in turns} == {1000.0}
    assert [turn.text for turn in await again.turns('chat', limit=2)] == texts[-2:]


async def test_turns_of_all_sessions_are_in_the_order_in_which_they_were_said(memory: Memory) -> None:
    for number in range(6):
        await memory.add_turn(f'chat{number % 2}', 'user', f'{number}', time=5.0)
    assert [turn.text for turn in await memory.turns(limit=4)] == ['2', '3', '4', '5']
    assert [(one.session, one.turns, one.title) for one in await memory.sessions()] == [
        ('chat1', 3, '1'),
        ('chat0', 3, '0'),
    ]


async def test_many_writers_of_one_session_get_different_positions(open_memory: Open) -> None:
    writers = [open_memory() for _ in range(4)]
    await asyncio.gather(*(one.add_turn('chat', 'user', f'same words {n}') for one in writers for n in range(5)))
    positions = [turn.position for turn in await writers[0].turns('chat')]
    assert positions == list(range(1, 21))


async def test_names_must_be_readable(memory: Memory, where: str) -> None:
    with pytest.raises(RememberError, match='not a valid session'):
        await memory.add_turn('', 'user', 'x')
    with pytest.raises(RememberError, match='not a valid role'):
        await memory.add_turn('chat', 'a\nb', 'x')
    with pytest.raises(RememberError, match='not a time'):
        await memory.add_turn('chat', 'user', 'x', time=float('nan'))
    with pytest.raises(RememberError, match='not a valid user'):
        Memory(where, user='a\x1b[31m')


async def test_a_fact_that_is_known_is_not_kept_twice(memory: Memory) -> None:
    first = await memory.add_fact('The cat is called Mia.')
    assert await memory.add_fact('  the cat is  called MIA') == first
    assert await memory.facts() == [first]


async def test_a_newer_fact_replaces_an_older_one_which_stays_in_the_history(memory: Memory) -> None:
    turn = await memory.add_turn('chat', 'user', 'I moved to Porto')
    old = await memory.add_fact('Lives in Lisbon')
    new = await memory.add_fact('Lives in Porto', source=turn.id, replaces=old.id)
    assert await memory.facts() == [new]
    history = await memory.facts(history=True)
    assert [(one.text, one.superseded_by) for one in history] == [('Lives in Lisbon', new.id), ('Lives in Porto', None)]
    assert [hit.entry for hit in await memory.search('Lisbon')] == []
    assert [hit.entry for hit in await memory.search('Lisbon', history=True)] == [history[0]]
    with pytest.raises(RememberError, match=f'was replaced by {new.id} already'):
        await memory.add_fact('Lives in Faro', replaces=old.id)
    back = await memory.add_fact('Lives in Lisbon', replaces=new.id)
    assert await memory.facts() == [back]


async def test_a_fact_must_be_short_of_a_known_kind_and_have_a_real_source(memory: Memory) -> None:
    for text in ('  ', 'x' * 2001):
        with pytest.raises(RememberError, match='a short statement'):
            await memory.add_fact(text)
    with pytest.raises(RememberError, match='not a kind of fact'):
        await memory.add_fact('x', 'gossip')  # pyright: ignore[reportArgumentType]
    fact = await memory.add_fact('x')
    for missing in ('0' * 12, '%', "' OR 1=1", fact.id):
        with pytest.raises(RememberError, match='no turn has the id'):
            await memory.add_fact('y', source=missing)
    assert await memory.facts() == [fact]


async def test_an_entry_is_found_by_the_start_of_its_id(memory: Memory) -> None:
    turn = await memory.add_turn('chat', 'user', 'hello')
    assert await memory.get(turn.id[:6]) == turn
    with pytest.raises(RememberError, match='no entry has the id'):
        await memory.get(turn.id[:3])


async def test_users_do_not_see_each_other(open_memory: Open) -> None:
    ann, bob = open_memory('ann'), open_memory('bob')
    secret = await ann.add_turn('chat', 'user', 'the password of ann is swordfish u_2 bob')
    await ann.add_fact('swordfish is the password')
    await ann.add_task('change the swordfish')
    await bob.add_turn('chat', 'user', 'hello')
    assert await bob.search('swordfish password u_1 ann') == []
    assert await bob.facts() == []
    assert await bob.tasks(all=True) == []
    assert [turn.text for turn in await bob.turns()] == ['hello']
    assert (await bob.context_for('swordfish password')).text == ''
    assert 'swordfish' not in '\n'.join(await bob.export())
    assert await bob.forget(query='swordfish') == []
    with pytest.raises(RememberError, match='no entry has the id'):
        await bob.forget(secret.id)
    assert len(await ann.search('swordfish')) == 2


async def test_an_export_is_imported_exactly_and_only_once(memory: Memory, open_memory: Open, tmp_path: Path) -> None:
    turn = await memory.add_turn('chat', 'user', ODD)
    old = await memory.add_fact('Likes tea', 'preference', source=turn.id)
    await memory.add_fact('Likes coffee', 'preference', replaces=old.id)
    first = await memory.add_task('one', notes='a\nb')
    await memory.add_task('two', after=[first.number])
    lines = await memory.export()
    async with Memory(tmp_path / 'other.db', user='carl') as other:
        assert await other.import_lines(lines) == 5
        assert await other.export() == lines
        assert await other.import_lines(lines) == 0
        assert await other.export() == lines
        assert [hit.entry.text for hit in await other.search('coffee')] == ['Likes coffee']
    assert await open_memory('bob').import_lines(lines) == 5


def line(**fields: object) -> str:
    return json.dumps(fields)


HEAD = line(habilis='memory', version=1)
TURN = {'id': 'abcd1234', 'session': 's', 'role': 'user', 'text': 't', 'time': 1.0, 'position': 1}
FACT = {'id': 'fact1234', 'text': 'f', 'time': 1.0}


@pytest.mark.parametrize(
    ('lines', 'why'),
    [
        ([], 'no export|JSON'),
        (['nonsense'], 'line 1'),
        ([line(habilis='run', version=1)], 'no export of a memory'),
        ([line(habilis='memory', version=99)], 'update Habilis'),
        ([HEAD, '[1]'], 'expected a JSON object'),
        ([HEAD, '[' * 5000], 'line 3: not JSON'),
        ([HEAD, line(turn=TURN, fact=FACT)], 'expected one of'),
        ([HEAD, line(turn=TURN), line(turn={**TURN, 'text': 'other', 'position': 2})], 'another entry with the id'),
        ([HEAD, line(turn=TURN), line(turn={**TURN, 'id': 'efgh5678'})], 'position 1'),
        ([HEAD, line(turn={**TURN, 'id': "x' OR '1'='1"})], 'not a valid id'),
        ([HEAD, line(turn={**TURN, 'text': 5})], 'text'),
        ([HEAD, line(turn={**TURN, 'time': 'inf'})], 'time'),
        ([HEAD, line(turn={**TURN, 'session': 'a\x1b[0m'})], 'session'),
        ([HEAD, line(fact={**FACT, 'source': 'nowhere'})], 'no turn'),
        ([HEAD, line(fact={**FACT, 'superseded_by': 'fact1234'})], 'not a newer fact'),
        ([HEAD, line(fact={**FACT, 'kind': 'gossip'})], 'kind'),
        ([HEAD, line(task={'number': 1, 'title': 't', 'state': 'lost'})], 'state'),
        ([HEAD, line(task={'number': 1, 'title': 't', 'after': [1]})], 'itself'),
        ([HEAD, line(task={'number': 1, 'title': 't', 'after': [2]})], 'no task 2'),
        ([HEAD, *(line(task={'number': n, 'title': 't', 'after': [3 - n]}) for n in (1, 2))], 'itself'),
        ([HEAD, line(task={'number': 2**70, 'title': 't'})], 'number'),
    ],
)
async def test_a_hostile_import_is_refused_and_leaves_nothing(lines: list[str], why: str, tmp_path: Path) -> None:
    async with Memory(tmp_path / 'memory.db') as memory:
        with pytest.raises(DocumentError, match=why) as caught:
            await memory.import_lines([*lines[:1], line(turn={**TURN, 'id': 'zzzz', 'position': 9}), *lines[1:]])
        assert 'nothing was imported' in str(caught.value)
        assert await memory.export() == [line(habilis='memory', version=1).replace(' ', '')]


@each_case('place', ['', ' ', 'folder/', 'a\0b', 'mysql://host/db'])
def test_a_place_that_is_none_is_refused(place: str) -> None:
    with pytest.raises(SettingsError):
        Memory(place)


async def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    from habilis.journal.stores.sqlite import SqliteStore

    store = SqliteStore(tmp_path / 'runs.db')
    await store.runs()
    await store.close()
    async with Memory(tmp_path / 'runs.db') as memory:
        with pytest.raises(HabilisError, match='database of another program, not a memory'):
            await memory.facts()


async def test_a_file_of_an_earlier_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / 'memory.db'
    async with Memory(path) as memory:
        await memory.add_fact('The boat is blue')
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute('ALTER TABLE entries DROP COLUMN project')
        database.execute('PRAGMA user_version = 1')
    async with Memory(path) as memory:
        with pytest.raises(StoreUnavailable, match=r'was written by an earlier Habilis .* export it with that one, or'):
            await memory.facts()


@pytest.mark.parametrize('same', ['my boat is blue.', 'My  boat is blue', 'Ｍｙ boat is blue', 'My boat\u200b is blue'])
async def test_a_fact_in_other_letters_is_the_same_fact(same: str, memory: Memory) -> None:
    fact = await memory.add_fact('My boat is blue')
    assert await memory.add_fact(same) == fact


async def test_a_fact_that_is_added_again_as_a_preference_becomes_one(memory: Memory) -> None:
    fact = await memory.within('work').add_fact('Answers are short')
    again = await memory.add_fact('Answers are short', 'preference')
    assert (again.id, again.kind, again.project) == (fact.id, 'preference', '')
    assert (await memory.add_fact('Answers are short')).kind == 'preference'
    assert [one.kind for one in await memory.facts()] == ['preference']


async def test_another_number_replaces_a_fact_and_other_words_do_not(memory: Memory) -> None:
    old = await memory.add_fact('The locker code is 7731')
    await memory.add_fact('My brother is tall')
    await memory.add_fact('My brother is kind')
    new = await memory.add_fact('The locker code is 8842.')
    assert [one.text for one in await memory.facts()] == ['My brother is tall', 'My brother is kind', new.text]
    assert (await memory.get(old.id)) == replace(old, superseded_by=new.id)
    assert [one.text for one in await memory.similar_facts('My brother is very tall')] == ['My brother is tall']
