"""What goes out grows at its end only, so that a provider can keep the beginning evaluated (row B13)."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.context.compaction import Compaction
from habilis.agent.context.conversation import Conversation
from habilis.models.contract import Message, Role

MAX_MARKS = 4


def without_marks(messages: Sequence[Message]) -> list[Message]:
    return [replace(message, cache=False) for message in messages]


def talk(steps: int) -> Conversation:
    conversation = Conversation('You write Python.')
    conversation.add(Message(role='user', text='Do it.'), by_user=True)
    for number in range(steps):
        conversation.add(Message(role='assistant', text=f'```python\nprint({number})\n```'))
        conversation.add(Message(role='user', text=f'Output:\n{number} ' + 'x ' * 300))
    return conversation


def test_the_system_prompt_comes_first_and_is_marked() -> None:
    [system, task] = talk(0).outgoing()
    assert system == Message(role='system', text='You write Python.', cache=True)
    assert task == Message(role='user', text='Do it.', cache=True)


roles = st.sampled_from(['user', 'assistant', 'tool'])


@given(st.lists(st.tuples(roles, st.text(max_size=20), st.booleans()), min_size=1, max_size=12))
def test_what_was_sent_is_the_beginning_of_what_is_sent_next(added: list[tuple[Role, str, bool]]) -> None:
    conversation = Conversation('system')
    sent = conversation.outgoing()
    for role, text, marked in added:
        conversation.add(Message(role=role, text=text, cache=marked), by_user=role == 'user')
        following = conversation.outgoing()
        assert without_marks(following)[: len(sent)] == without_marks(sent)
        assert len(following) == len(sent) + 1
        sent = following
        assert [message.cache for message in sent] == [True, *[False] * (len(sent) - 2), True]


def test_there_are_never_more_marks_than_a_provider_takes() -> None:
    history = [Message(role='user', text=str(number), cache=True) for number in range(20)]
    conversation = Conversation('system', history)
    assert sum(message.cache for message in conversation.outgoing(extra='more')) <= MAX_MARKS


def test_marks_are_put_on_what_goes_out_and_not_into_the_history() -> None:
    conversation = talk(2)
    conversation.outgoing()
    assert not any(message.cache for message in conversation.messages)


def test_something_extra_goes_out_once_and_behind_the_last_mark() -> None:
    conversation = talk(1)
    once = conversation.outgoing(extra='Documents for this step.')
    assert once[-1] == Message(role='user', text='Documents for this step.')
    assert once[-2].cache
    assert 'Documents' not in str(conversation.outgoing())
    assert 'Documents' not in str(conversation.messages)


def test_another_system_prompt_goes_out_once() -> None:
    conversation = talk(1)
    assert conversation.outgoing(system='Do not stop.')[0].text == 'Do not stop.'
    assert conversation.outgoing()[0].text == 'You write Python.'
    assert conversation.outgoing(system='')[0].text == ''


def test_an_earlier_conversation_continues_under_the_new_system_prompt() -> None:
    earlier = [
        Message(role='system', text='old'),
        Message(role='user', text='Hello.'),
        Message(role='assistant', text='Hi.'),
    ]
    conversation = Conversation('new', earlier)
    assert [(message.role, message.text) for message in conversation.outgoing()] == [
        ('system', 'new'),
        ('user', 'Hello.'),
        ('assistant', 'Hi.'),
    ]


def test_compacting_says_whether_it_did_anything() -> None:
    conversation = talk(12)
    before = conversation.outgoing()
    assert conversation.compact() is True
    after = conversation.outgoing()
    assert len(after) < len(before)
    assert without_marks(after)[:2] == without_marks(before)[:2]
    assert conversation.compact() is False
    assert conversation.outgoing() == after


def test_compacting_harder_goes_further() -> None:
    conversation = talk(12)
    conversation.compact()
    size = len(conversation.messages)
    assert conversation.compact(Compaction(keep=1)) is True
    assert len(conversation.messages) < size


def test_what_people_wrote_earlier_is_never_shortened() -> None:
    said = [Message(role='user', text=f'Remember {number}. ' * 200) for number in range(5)]
    conversation = Conversation(
        'system', [item for text in said for item in (text, Message(role='assistant', text='ok ' * 200))]
    )
    assert conversation.compact(Compaction(keep=1)) is True
    assert [message for message in conversation.messages if message in said] == said


def test_the_observations_of_an_earlier_run_are_shortened_and_what_its_user_wrote_is_not() -> None:
    before = talk(6)
    conversation = Conversation('system', before.messages)
    assert conversation.compact(Compaction(keep=1, tokens=200)) is True
    texts = [message.text for message in conversation.messages]
    assert texts[0] == 'Do it.'
    assert sum(map(len, texts)) < sum(len(message.text) for message in before.messages) / 2
    again = Conversation('system', [*conversation.messages, *talk(6).messages])
    assert again.compact() is True
    assert sum('Earlier steps' in message.text for message in again.messages) == 1, 'a digest joins the next one'


def test_starting_over_keeps_what_was_said_before_the_run() -> None:
    conversation = Conversation('system', talk(1).messages)
    conversation.add(Message(role='user', text='And now?'), by_user=True)
    conversation.add(Message(role='assistant', text='wrong'))
    conversation.forget_steps('Try another way.')
    assert [message.text for message in conversation.messages[-2:]] == ['And now?', 'Try another way.']
    assert conversation.messages[:-2] == talk(1).messages
