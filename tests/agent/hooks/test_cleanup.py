"""Messages are cleaned on their way out, and the history keeps them as they were."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.hooks import CleanMessages
from habilis.models.contract import FunctionCall, Message
from habilis.models.scripted import ScriptedModel
from tests.agent.hooks.watching import ANSWER, agent

THEN = datetime(2026, 1, 2, tzinfo=UTC)
CALL = FunctionCall(id='1', name='python', arguments='{"code": "1"}')


def cleaned(*messages: Message, clean: CleanMessages | None = None) -> list[Message]:
    """What is sent of these."""
    return list((clean or CleanMessages()).outgoing(messages))


async def test_in_a_run_nothing_unclean_is_sent_and_the_history_stays() -> None:
    history = [
        Message(role='user', text='Before. \n\n', created_at=THEN),
        Message(role='assistant', text='Yes\x00.', thinking='hm', created_at=THEN),
        Message(role='user', text='  ', created_at=THEN),
    ]
    model = ScriptedModel([ANSWER])
    async with agent(model, hooks=[CleanMessages()]) as working:
        result = await working.run('Go on.', history=history)
    sent = model.requests[0].messages
    assert [message.created_at for message in sent] == [None] * len(sent)
    assert [message.thinking for message in sent] == [''] * len(sent)
    assert [message.text for message in sent[1:3]] == ['Before.', 'Yes.']
    assert len(sent) == 4
    assert list(result.messages[:3]) == history


def test_dates_and_thoughts_are_dropped() -> None:
    [sent] = cleaned(Message(role='assistant', text='a', thinking='b', created_at=THEN))
    assert sent == Message(role='assistant', text='a')


def test_space_at_the_end_is_dropped_and_space_inside_stays() -> None:
    assert [message.text for message in cleaned(Message(role='user', text='  a  \n\n b \n\t '))] == ['  a  \n\n b']


def test_controls_are_dropped_also_from_calls() -> None:
    call = replace(CALL, arguments='{"code": "\x001\x1b[2J"}')
    [sent] = cleaned(Message(role='assistant', text='a\x00\x08\x7fb\ud800\r\n\tc', calls=(call,)))
    assert sent.text == 'ab\ufffd\r\n\tc'
    assert sent.calls == (CALL,)


def test_turns_with_nothing_in_them_are_dropped() -> None:
    assert cleaned(Message(role='user', text=' \n\x00'), Message(role='user', text='a')) == [
        Message(role='user', text='a')
    ]


def test_a_call_and_its_empty_answer_stay_together() -> None:
    messages = [Message(role='assistant', calls=(CALL,)), Message(role='tool', call_id='1', call_name='python')]
    assert cleaned(*messages) == messages


def test_the_mark_for_the_cache_moves_to_the_turn_before() -> None:
    sent = cleaned(Message(role='user', text='a'), Message(role='user', text='', cache=True))
    assert sent == [Message(role='user', text='a', cache=True)]


def test_each_part_can_be_switched_off() -> None:
    message = Message(role='user', text=' \x00 ', thinking='b', created_at=THEN)
    nothing = CleanMessages(created_at=False, thinking=False, whitespace=False, empty=False, controls=False)
    assert cleaned(message, clean=nothing) == [message]
    assert cleaned(message, clean=CleanMessages(empty=False, created_at=False))[0].created_at == THEN
    assert cleaned(message, clean=CleanMessages(empty=False, thinking=False))[0].thinking == 'b'
    assert cleaned(message, clean=CleanMessages(empty=False, controls=False))[0].text == ' \x00'
    assert cleaned(message, clean=CleanMessages(empty=False, whitespace=False))[0].text == '  '


MESSAGES = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(['system', 'user', 'assistant', 'tool']),
        text=st.text(st.one_of(st.characters(), st.sampled_from(' \n\x00\x1b[m\ud800'))),
        thinking=st.text(),
        cache=st.booleans(),
    )
)


@given(MESSAGES)
def test_what_is_clean_stays_as_it_is(messages: list[Message]) -> None:
    once = cleaned(*messages)
    assert cleaned(*once) == once


@given(MESSAGES, MESSAGES)
def test_a_longer_conversation_begins_as_the_shorter_one_did(before: list[Message], more: list[Message]) -> None:
    short = [replace(message, cache=False) for message in cleaned(*before)]
    long = [replace(message, cache=False) for message in cleaned(*before, *more)]
    assert long[: len(short)] == short
