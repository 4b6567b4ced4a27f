"""Search finds single turns by their words, with neighbours, filters and sessions, and only those of the user."""

import contextlib
import random
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from habilis.memory import Memory, Turn
from tests.memory.conftest import Open


async def texts(memory: Memory, query: str, **options: object) -> list[str]:
    return [hit.entry.text for hit in await memory.search(query, **options)]  # pyright: ignore[reportArgumentType]


async def say(memory: Memory, *said: str, session: str = 'chat', at: float = 100.0) -> list[Turn]:
    return [
        await memory.add_turn(session, ('user', 'assistant')[number % 2], text, time=at + number)
        for number, text in enumerate(said)
    ]


async def test_a_rare_word_weighs_more_than_common_ones(memory: Memory) -> None:
    await say(memory, *(f'the project meeting of week {number} was long' for number in range(30)))
    await say(memory, 'Quixote barked all night', session='other')
    assert (await texts(memory, 'did Quixote come to the project meeting?'))[0] == 'Quixote barked all night'


async def test_forms_of_a_word_match_and_stop_words_do_not(memory: Memory) -> None:
    await say(memory, 'I was running two marathons', 'It is what it is, and so on')
    assert await texts(memory, 'Which marathon did you run?') == [
        'I was running two marathons',
        'It is what it is, and so on',  # the turn next to it, after it
    ]
    assert await texts(memory, 'what is it?') == []


async def test_texts_without_spaces_are_found_by_a_part_of_them(memory: Memory) -> None:
    await say(memory, '明日は東京で会議があります', 'Café Ñandú')
    assert (await texts(memory, '東京'))[0] == '明日は東京で会議があります'
    assert (await texts(memory, 'cafe nandu'))[0] == 'Café Ñandú'


async def test_an_answer_is_found_by_the_words_of_its_question(memory: Memory) -> None:
    await say(memory, 'Which city did you grow up in?', 'Ljubljana, near the castle.', 'Nice.', 'And the food?')
    hits = await memory.search('city where he grew up', limit=2, neighbours=True)
    assert [hit.entry.text for hit in hits] == ['Which city did you grow up in?', 'Ljubljana, near the castle.']
    assert hits[1].words == 0
    assert hits[1].nearby == hits[0].words > 0
    assert [turn.text for turn in hits[1].around] == ['Which city did you grow up in?', 'Nice.']


async def test_a_filter_that_drops_most_entries_with_the_words_still_finds_the_others(memory: Memory) -> None:
    await say(memory, 'apple of the first day', session='old')
    await say(memory, *(f'apple number {number}' for number in range(400)), session='new')
    assert await texts(memory, 'apple', session='old') == ['apple of the first day']


async def test_the_name_of_a_speaker_counts(memory: Memory) -> None:
    await memory.add_turn('chat', 'Caroline', 'I adopted a kitten')
    await memory.add_turn('other', 'Melanie', 'I adopted a kitten')
    assert [hit.entry for hit in await memory.search('What did Melanie adopt?', limit=1)] == [
        (await memory.turns('other'))[0]
    ]


async def test_of_equal_turns_the_newer_comes_first(memory: Memory) -> None:
    for number in range(3):
        await memory.add_turn(f's{number}', 'user', 'the same words', time=(50.0, 90.0, 70.0)[number])
    assert [hit.entry.time for hit in await memory.search('same words')] == [90.0, 70.0, 50.0]


async def test_time_role_session_and_type_are_filters(memory: Memory) -> None:
    await say(memory, 'apple one', 'apple two', 'apple three')
    await say(memory, 'apple four', session='other', at=500.0)
    await memory.add_fact('apple five')
    assert set(await texts(memory, 'apple', since=101.0, until=500.0)) == {'apple two', 'apple three'}
    assert set(await texts(memory, 'apple', role='assistant')) == {'apple two'}
    assert set(await texts(memory, 'apple', session='other')) == {'apple four'}
    assert set(await texts(memory, 'apple', type='fact')) == {'apple five'}
    assert len(await texts(memory, 'apple')) == 5


async def test_sessions_are_found_as_a_whole(memory: Memory) -> None:
    await say(memory, 'the boat needs paint', 'which colour for the boat?', 'blue', session='boat')
    await say(memory, 'a boat passed', 'nothing else', 'really nothing', session='walk')
    found = await memory.search_sessions('paint colour of the boat')
    assert [one.session for one in found] == ['boat', 'walk']
    assert found[0].hits[0].entry.text in {'the boat needs paint', 'which colour for the boat?'}


async def test_hostile_queries_find_nothing_and_break_nothing(memory: Memory) -> None:
    await say(memory, 'plain words')
    for query in ('', '"', '*', 'AND OR NOT NEAR(', "'; DROP TABLE entries; --", '\0\ud800', '%s', 'u_1', '?' * 5000):
        assert await texts(memory, query) == []
    assert await texts(memory, 'plain ' * 5000) == ['plain words']
    long = ' '.join(f'word{number}' for number in range(3000))
    await say(memory, long, session='long')
    assert (await texts(memory, long))[0] == long


async def test_no_search_shows_anything_of_another_user(tmp_path: Path) -> None:
    searches = 500  # `python -m benchmarks memory` makes 10,000
    chance = random.Random(7)
    vocabulary = [f'word{number}' for number in range(40)] + [f'u_{number}' for number in range(8)]
    where = tmp_path / 'memory.db'
    users = [Memory(where, user=f'user{number}') for number in range(6)]
    for user in users:
        for number in range(25):
            text = f'{user.user} said {" ".join(chance.choices(vocabulary, k=6))}'
            await user.add_turn(f's{number % 4}', 'user', text, time=float(number))
            if number % 5 == 0:
                await user.add_fact(f'{user.user} knows {" ".join(chance.choices(vocabulary, k=3))} {number}')
    shown = 0
    for _ in range(searches):
        user = chance.choice(users)
        for hit in await user.search(' '.join(chance.choices([*vocabulary, 'user1', 'said'], k=3)), limit=10):
            assert hit.entry.text.startswith(f'{user.user} ')
            shown += 1
    assert shown > 5 * searches
    for user in users:
        await user.close()


async def test_a_word_typed_like_a_key_of_another_user_gives_no_access(open_memory: Open) -> None:
    ann, bob = open_memory('ann'), open_memory('bob')
    await ann.add_turn('chat', 'user', 'u_2 secret')
    await bob.add_turn('chat', 'user', 'u_1 public')
    assert await texts(bob, 'secret u_2 u_1') == ['u_1 public'] or await texts(bob, 'secret') == []


async def test_a_memory_is_searched_while_another_process_writes(tmp_path: Path) -> None:
    async with Memory(tmp_path / 'memory.db') as memory:
        turn = await memory.add_turn('chat', 'user', 'plain words')
        with contextlib.closing(sqlite3.connect(tmp_path / 'memory.db', isolation_level=None)) as other:
            other.execute('BEGIN IMMEDIATE')
            assert [hit.entry for hit in await memory.search('plain')] == [turn]


@pytest.mark.parametrize(
    ('said', 'asked'),
    [
        ('Wir wohnen in der Hauptstraße', 'HAUPTSTRASSE'),
        ('We fly to İstanbul', 'istanbul'),
        ('The ﬁnal oﬃce', 'final office'),
        ('Ёлка и ещё одна', 'елка'),
        ("Mrs O'Brien called", 'OBrien'),
        ('Our café is closed', 'cafe'),
        ('ฉันอาศัยอยู่ในกรุงเทพมหานคร', 'กรุงเทพ'),
        ('我家有一只猫咪', '猫'),
        ('That was great 🎉', '🎉'),
        ('We went to the zoo', 'When did we go to the zoo?'),
        ('She bought two mice', 'buy a mouse'),
    ],
)
async def test_words_are_found_however_they_are_written(said: str, asked: str, memory: Memory) -> None:
    turn = await memory.add_turn('chat', 'user', said)
    await memory.add_turn('chat', 'user', 'Something else entirely, with other words')
    assert [hit.entry for hit in await memory.search(asked) if hit.words] == [turn]


async def test_of_turns_with_the_same_words_that_of_a_conversation_about_them_comes_first(memory: Memory) -> None:
    wanted = await memory.add_turn('trip', 'user', 'The ferry left at nine', time=1.0)
    for words in ('Small talk', 'The harbour was full', 'More talk', 'We loved the harbour and the sea'):
        await memory.add_turn('trip', 'user', words, time=2.0)
    for number in range(5):
        await memory.add_turn(f's{number}', 'user', 'The ferry left at nine', time=3.0)
    found = [hit.entry for hit in await memory.search('ferry at the harbour') if 'ferry' in hit.entry.text]
    assert found[0] == wanted


async def test_the_month_in_a_question_counts(memory: Memory) -> None:
    def at(month: int) -> float:
        return datetime(2025, month, 10, 12, tzinfo=UTC).timestamp()

    july = await memory.add_turn('a', 'user', 'We had dinner with Nora', time=at(7))
    await memory.add_turn('b', 'user', 'We had dinner with Nora', time=at(9))
    assert (await memory.search('Where was the dinner with Nora in July?'))[0].entry == july
    assert (await memory.search('May we have dinner with Nora?'))[0].entry != july
