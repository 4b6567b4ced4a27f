"""`Session.compact`: a conversation is shortened because its user wants it so."""

import pytest

from habilis.assistant import Session
from habilis.core.errors import AgentError, ModelError
from habilis.memory import Memory
from habilis.models.scripted import ScriptedModel
from tests.assistant.conftest import Open, sent
from tests.cli.chat import code
from tests.place import Place

LONG = ' '.join(
    f'Boat {number} has the length {number * number % 97} and is moored at {number * 31 % 89}.' for number in range(150)
)
SUMMARY = 'Goal: boats.\nDecisions: none.\nFacts: 7 boats are red.\nOpen: nothing.\nVariables: x is 7.'


async def test_the_next_turn_gets_a_summary_with_what_was_to_be_kept_also_after_a_resume(session: Open) -> None:
    replies = [code(f'x = 7\nprint({LONG!r})'), LONG, 'Later.', SUMMARY]
    async with session([*replies, code('final_answer(x)')]) as chat:
        await chat.send('Count the boats.')
        await chat.send('And then?')
        done = await chat.compact('the red boats')
        assert done.is_summary
        assert done.after < done.before / 3
        assert 'kept above all: the red boats' in sent(chat, 3)[-1]
        id = chat.id
        result = await chat.send('What is x?')
        assert result.output == 7  # the variables are still there
        assert not any(LONG in text for text in sent(chat, 4))
        assert any('7 boats are red' in text for text in sent(chat, 4))
    async with session(['Hello.'], id=id) as again:
        await again.send('And now?')
        assert any('7 boats are red' in text for text in sent(again, 0))
        assert not any(LONG in text for text in sent(again, 0))


async def test_a_conversation_that_is_resumed_after_it_was_shortened_stays_so_and_undo_brings_it_back(
    session: Open,
) -> None:
    async with session([LONG, LONG, SUMMARY]) as chat:
        await chat.send('One.')
        await chat.send('Two.')
        await chat.compact()
        id = chat.id
    async with session(['Hello.', 'Bye.'], id=id) as again:
        await again.send('Three.')
        assert any('7 boats are red' in text for text in sent(again, 0))
        await again.undo()
        await again.undo()
        await again.send('Two, again.')
        assert sent(again, 1)[:2] == ['One.', LONG]


async def test_a_small_context_gets_a_digest_without_a_request_and_a_short_chat_stays_as_it_is(
    memory: Memory, place: Place
) -> None:
    model = ScriptedModel(['Hi.', LONG, LONG], context_tokens=8000)
    async with Session(model, memory=memory, journal=place.folder / 'runs.db') as chat:
        await chat.send('Hello.')
        short = await chat.compact()
        assert short.before == short.after
        await chat.send('One.')
        await chat.send('Two.')
        done = await chat.compact()
        assert (done.is_summary, done.after < done.before) == (False, True)
        assert len(model.requests) == 3


async def test_the_original_of_a_copy_stays_as_it_was(session: Open) -> None:
    async with session([LONG, LONG, SUMMARY, 'A.', 'B.']) as chat:
        await chat.send('One.')
        await chat.send('Two.')
        left = await chat.fork()
        await chat.compact()
        await chat.send('In the copy.')
        assert any('7 boats are red' in text for text in sent(chat, 3))
        await chat.enter(left)
        await chat.send('In the original.')
        assert not any('7 boats are red' in text for text in sent(chat, 4))


async def test_an_unfinished_turn_is_finished_first_and_a_model_that_fails_leaves_a_digest(session: Open) -> None:
    failure = ModelError('no')
    async with session([LONG, LONG, failure, 'Done.', failure]) as chat:
        await chat.send('One.')
        await chat.send('Two.')
        with pytest.raises(ModelError):
            await chat.send('Three.')
        with pytest.raises(AgentError, match='not finished'):
            await chat.compact()
        await chat.send('Three.')
        done = await chat.compact()
        assert (done.is_summary, done.after < done.before) == (False, True)


async def test_what_was_said_before_a_conversation_was_shortened_is_recalled(session: Open, memory: Memory) -> None:
    await memory.add_fact('Answer in German', 'instruction')
    replies = ['Noted.', *(LONG for _ in range(12)), 'no summary', 'Yes.', 'It is 7731.']
    told = f'{"rain " * 50}My locker code is 7731. {"sun " * 60}'.strip()  # a digest has no room for all of it
    async with session(replies) as chat:
        await chat.send(told)
        for number in range(12):
            await chat.send(f'Tell me more of boat {number}.')
        assert chat.recalled is not None
        assert chat.recalled.items == ()  # the model still sees the code and the instruction
        await chat.compact()
        await chat.send('Go on.')
        await chat.send('What is my locker code?')
        assert chat.recalled is not None
        assert [item.entry.text for item in chat.recalled.items] == [told]
        shown = ''.join(sent(chat, 15))
        assert shown.count('Answer in German') == 1  # once, shortened or not
