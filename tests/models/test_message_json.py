"""Messages as JSON and back, to continue a conversation later."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habilis import Agent, ScriptedModel
from habilis.core.errors import DocumentError
from habilis.models import messages_from_json, messages_to_json
from habilis.models.contract import FunctionCall, Message

TEXTS = st.text(max_size=20)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(['system', 'user', 'assistant', 'tool']),
    text=TEXTS,
    calls=st.lists(st.builds(FunctionCall, id=TEXTS, name=TEXTS, arguments=TEXTS), max_size=2).map(tuple),
    call_id=st.none() | TEXTS,
    call_name=st.none() | TEXTS,
    thinking=TEXTS,
    cache=st.booleans(),
    created_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    by_agent=st.booleans(),
)


@settings(max_examples=50)
@given(st.lists(MESSAGES, max_size=4))
def test_messages_are_equal_after_the_round_trip(messages: list[Message]) -> None:
    text = messages_to_json(messages)
    assert text.isascii()
    assert messages_from_json(text) == tuple(messages)


async def test_a_conversation_continues_from_json() -> None:
    async with Agent(ScriptedModel(['It is Paris.', 'Yes.']), journal='off') as agent:
        first = await agent.run('The capital of France?')
        history = messages_from_json(messages_to_json(first.messages, indent=2))
        second = await agent.run('Are you sure?', history=history)
    assert second.messages[: len(history)] == first.messages


def test_the_first_version_is_read() -> None:
    """This text must be read for ever."""
    text = (
        '{"habilis":"conversation","version":1,"messages":[{"role":"user","text":"Hi","mood":"good",'
        '"created_at":{"$":"datetime","v":"2026-05-04T03:02:00+00:00"}},{"role":"assistant","calls":'
        '{"$":"tuple","v":[{"id":"1","name":"f","arguments":"{}"}]}}]}'
    )
    assert messages_from_json(text) == (
        Message(role='user', text='Hi', created_at=datetime(2026, 5, 4, 3, 2, tzinfo=UTC)),
        Message(role='assistant', calls=(FunctionCall(id='1', name='f', arguments='{}'),)),
    )


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', 'cannot read this conversation: not JSON'),
        ('[{"role": "user"}]', 'this JSON is no conversation that Habilis wrote: it has no "habilis": "conversation"'),
        ('{"habilis": "conversation", "version": 2}', 'update Habilis'),
        (
            '{"habilis": "conversation", "version": 1, "messages": [{"role": "boss"}]}',
            'messages.0.role: Input',
        ),
    ],
)
def test_bad_text_gets_a_clear_error(text: str, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        messages_from_json(text)
    assert words in str(caught.value)
