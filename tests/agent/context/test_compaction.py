"""A conversation that grew too long gets shorter; what people wrote never goes."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.context.compaction import (
    DIGEST_TOKENS,
    KEPT_STEPS,
    AuthoredMessage,
    Compaction,
    compact,
    earlier_turn,
    room_for,
    summary_in,
)
from habilis.models.contract import FunctionCall, Message
from habilis.models.tokens import count_message_tokens, count_tokens

TASK = AuthoredMessage(message=Message(role='user', text='Add up the sales of 2024. ' * 20), by_user=True)


def step(number: int, size: int = 400) -> list[AuthoredMessage]:
    """Code in a fence, and what it printed."""
    code = f'```python\nprint({number})\n```'
    return [
        AuthoredMessage(message=Message(role='assistant', text=code)),
        AuthoredMessage(message=Message(role='user', text=f'Output:\n{number} ' + 'x ' * size)),
    ]


def call_step(number: int) -> list[AuthoredMessage]:
    """The same as a function call."""
    call = FunctionCall(id=f'c{number}', name='python', arguments=f'{{"code": "print({number})"}}')
    return [
        AuthoredMessage(message=Message(role='assistant', calls=(call,))),
        AuthoredMessage(
            message=Message(role='tool', text=f'Output:\n{number} ' + 'x ' * 400, call_id=call.id, call_name='python')
        ),
    ]


def history(steps: int) -> list[AuthoredMessage]:
    return [TASK, *(turn for number in range(steps) for turn in step(number))]


def size(turns: list[AuthoredMessage] | tuple[AuthoredMessage, ...]) -> int:
    return count_message_tokens([turn.message for turn in turns])


def by_user(turns: list[AuthoredMessage] | tuple[AuthoredMessage, ...]) -> list[str]:
    return [turn.message.text for turn in turns if turn.by_user]


def test_the_last_steps_stay_and_earlier_ones_become_an_entry_each() -> None:
    full = history(10)
    short = compact(full, Compaction(variables=['rows (list, 30 items)', 'total = 7']))
    assert short[0] == TASK
    assert short[1].digest
    assert short[1].message.role == 'user'
    assert list(short[2:]) == full[-2 * KEPT_STEPS :]
    lines = short[1].message.text.split('\n')
    assert lines[:3] == ['Earlier steps, shortened:', '- you: print(0)', '- saw: Output:']
    assert lines[3].startswith('  0 x x')
    assert ' […] ' in lines[3]
    assert sum(line.startswith('- ') for line in lines) == 2 * (10 - KEPT_STEPS) + 1
    assert lines[-1] == '- variables that are there: rows (list, 30 items), total = 7'


def test_it_gets_shorter_and_a_second_time_changes_nothing() -> None:
    full, how = history(10), Compaction(tokens=500)
    short = compact(full, how)
    assert size(short) < size(full) / 2
    assert compact(short, how) == short


def test_later_steps_join_the_digest() -> None:
    short = compact(history(10))
    longer = (*short, *(turn for number in range(10, 14) for turn in step(number)))
    again = compact(longer)
    assert [turn.digest for turn in again].count(True) == 1
    digest = next(turn.message.text for turn in again if turn.digest)
    assert [f'print({number})' in digest for number in range(14)] == [True] * 11 + [False] * 3


def test_of_a_long_step_the_words_and_both_ends_of_code_and_output_stay() -> None:
    words = 'The key is in the footer, so I read to the end. ' + 'Then I go on. ' * 20
    code = 'def load(path):\n' + '    path = path.strip()\n' * 100 + "totals = load('a.csv')"
    page = 'A page about pears.\n' + 'Nothing of note here.\n' * 200 + 'The code of the vault is 4711.'
    was = 'New variables: totals (list, 3 items)'
    call = FunctionCall(id='c', name='python', arguments=json.dumps({'code': code}))
    for said in (
        Message(role='assistant', text=f'{words}\n```python\n{code}\n```'),
        Message(role='assistant', text=words, calls=(call,)),
    ):
        turns = [
            AuthoredMessage(message=said),
            AuthoredMessage(message=Message(role='user', text=f'Output:\n{page}\n{was}')),
        ]
        digest = compact([TASK, *turns, *history(4)[1:]])[1].message.text
        assert words.strip() in digest
        for kept in (
            'def load(path):',
            "totals = load('a.csv')",
            'A page about pears.',
            'The code of the vault is 4711.',
        ):
            assert kept in digest
        assert '```' not in digest
        assert was not in digest, 'the digest describes the variables that are there'
        assert len(digest) < 2200


def test_a_summary_stands_for_the_steps_and_not_for_what_people_wrote() -> None:
    text = 'Goal: add up\nDecisions: none\nFacts: berth 47 (page 1)\nOpen: the sum\nVariables: rows'
    before = [earlier_turn(Message(role='user', text='The boat is blue. ' * 50)), *step(0)]
    short = compact([*before, *history(8)], Compaction(summary=summary_in(text), drop_earlier=True))
    earlier, own = (turn.message.text for turn in short if turn.digest)
    assert earlier.split('\n')[1].startswith('- user: The boat is blue.')
    assert own == 'Earlier steps, shortened:\n- summary: ' + text.replace('\n', '\n  ')
    again = compact([*short, *history(90)[1:]], Compaction(tokens=300))
    assert 'berth 47 (page 1)' in again[-2 * KEPT_STEPS - 1].message.text, 'it outlives the entries of later steps'
    assert [summary_in('```python\nprint(1)\n```'), summary_in('')] == ['', '']


def test_steps_from_before_this_run_are_not_said_to_have_left_variables() -> None:
    before = [earlier_turn(replace(turn.message, by_agent=not turn.by_user)) for turn in history(4)]
    short = compact([*before, *history(8)], Compaction(variables=['x = 1']))
    earlier, own = (turn for turn in short if turn.digest)
    assert (earlier.earlier, own.earlier) == (True, False)
    assert 'variables' not in earlier.message.text
    assert 'variables that are there: x = 1' in own.message.text
    later = earlier_turn(own.message)  # in the run after this one
    assert (later.digest, 'variables' in later.message.text) == (True, False)


def test_a_digest_of_very_many_steps_is_bounded_and_says_what_is_missing() -> None:
    turns = tuple(history(4))
    for number in range(4, 300):
        turns = compact((*turns, *step(number)))
    digest = next(turn.message.text for turn in turns if turn.digest)
    assert count_tokens(digest) < DIGEST_TOKENS + 50
    kept = digest.count('- you: ') + digest.count('- saw: ')
    assert f'- ({2 * 297 - kept} more are left out)' in digest
    assert 'print(296)' in digest
    small = compact([*turns, *step(300)], Compaction(tokens=200))
    assert count_tokens(next(turn.message.text for turn in small if turn.digest)) < 250


def test_calls_and_their_answers_stay_together() -> None:
    turns = [TASK, *(turn for number in range(8) for turn in call_step(number))]
    for keep in range(5):
        short = compact(turns, Compaction(keep=keep))
        asked = [call.id for turn in short for call in turn.message.calls]
        answered = [turn.message.call_id for turn in short if turn.message.role == 'tool']
        assert asked == answered
        assert len(asked) == keep


def test_what_a_person_says_in_the_middle_stays_as_it_is() -> None:
    said = AuthoredMessage(message=Message(role='user', text='Use euros, please. ' * 50), by_user=True)
    short = compact([*history(3), said, *(turn for number in range(6) for turn in step(number))])
    assert said in short


def test_what_is_short_already_is_left_alone() -> None:
    assert compact(history(KEPT_STEPS)) == tuple(history(KEPT_STEPS))
    tiny = (TASK, *(AuthoredMessage(message=Message(role='assistant', text='ok')) for _ in range(4)))
    assert compact(tiny) == tiny
    assert compact([]) == ()


def test_a_single_huge_observation_is_cut_when_nothing_else_helps() -> None:
    huge = [TASK, *step(1, size=20_000)]
    short = compact(huge, Compaction(keep=1))
    assert size(short) < size(huge) / 10
    assert short[2].message.text.startswith('Output:\n1 x x')
    assert '38,510 characters truncated' in short[2].message.text
    assert compact(short, Compaction(keep=1)) == short


def test_a_huge_last_observation_is_cut_together_with_the_steps_before_it() -> None:
    short = compact([*history(5), *step(6, size=20_000)], Compaction(keep=1))
    assert size(short) < 4_000


def test_a_huge_message_of_a_person_is_not_cut() -> None:
    long = replace(TASK, message=Message(role='user', text='data ' * 20_000))
    assert by_user(compact([long, *step(1, size=20_000)], Compaction(keep=1))) == [long.message.text]


@pytest.mark.parametrize(('context', 'reply', 'too'), [(4096, 1024, False), (1024, 200, True), (1300, 600, True)])
def test_too_long_leaves_room_for_the_reply(context: int, reply: int, too: bool) -> None:
    messages = [Message(role='user', text='word ' * 900)]
    assert (count_message_tokens(messages) > room_for(context, reply)) is too


messages = st.one_of(
    st.builds(Message, role=st.sampled_from(['assistant', 'user', 'tool']), text=st.text(max_size=3000)),
    st.builds(
        Message,
        role=st.just('assistant'),
        calls=st.builds(FunctionCall, id=st.text(max_size=3), name=st.text(max_size=3), arguments=st.text()).map(
            lambda call: (call,)
        ),
    ),
)


def turn_of(message: Message, said: bool) -> AuthoredMessage:
    return AuthoredMessage(message=message, by_user=said and message.role == 'user')


turns = st.lists(st.builds(turn_of, messages, st.booleans()), max_size=25)


@given(turns, st.integers(0, 5))
def test_of_any_history_nothing_a_person_wrote_is_lost_and_nothing_grows(
    full: list[AuthoredMessage], keep: int
) -> None:
    short = compact(full, Compaction(keep=keep))
    assert by_user(short) == by_user(full)
    assert short == tuple(full) or size(short) < size(full)
    assert sum(turn.digest for turn in short) <= 1
    if keep > 1:
        assert list(short[-keep:]) == full[-keep:] or len(full) < keep


@given(turns, st.integers(0, 5))
def test_doing_it_twice_is_doing_it_once(full: list[AuthoredMessage], keep: int) -> None:
    once = compact(full, Compaction(keep=keep))
    if once != tuple(full):
        assert compact(once, Compaction(keep=keep)) == once


def test_what_people_wrote_before_this_run_joins_the_digest_only_where_it_must() -> None:
    said = [
        message
        for n in range(40)
        for message in (
            Message(role='user', text=f'question {n} ' + 'about the pears ' * 9),
            Message(role='assistant', text=f'answer {n}'),
        )
    ]
    full = [*map(earlier_turn, said), TASK]
    assert by_user(compact(full)) == by_user(full)
    short = compact(full, Compaction(drop_earlier=True, tokens=300))
    assert by_user(short) == [*by_user(full)[38:40], TASK.message.text], 'those of the last steps stay as they are'
    digest = next(turn.message.text for turn in short if turn.digest)
    assert count_message_tokens([Message(role='user', text=digest)]) < 350
    assert '- user: question 36 about the pears' in digest
    assert 'question 1 ' not in digest
    again = compact([*(earlier_turn(turn.message) for turn in short), TASK], Compaction(drop_earlier=True, tokens=300))
    assert [turn.digest for turn in again].count(True) == 1
