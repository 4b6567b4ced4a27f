"""A session from plain Python: turns, memory, undo, fork, stop, questions; no terminal anywhere."""

import asyncio
import subprocess
import sys
from typing import get_args

import pytest

from habilis.agent.events import AgentEvent
from habilis.assistant import FilesEdited, Session, TurnEnded, TurnStarted
from habilis.assistant.contract import SessionEvent, TurnAbandoned
from habilis.core.errors import AgentError, ModelUnavailable, RunBusy, RunStopped
from habilis.core.events import Event
from habilis.memory import Memory
from habilis.models.files import File
from habilis.models.scripted import ScriptedModel
from habilis.tools import ApprovalRequest, tool
from tests.agent.scripts import block
from tests.assistant.conftest import Open, Page, said, sent
from tests.place import Place
from tests.waiting import until


async def test_turns_share_their_variables_and_are_in_the_memory(session: Open, memory: Memory) -> None:
    async with session([block('x = 41\nfinal_answer(x)'), block('final_answer(x + 1)')]) as chat:
        assert (await chat.send('Set x.')).output == 41
        assert (await chat.send('One more?')).output == 42
        assert chat.usage.requests == 2
        assert [run.info.title for run in await chat.runs()] == ['One more?', 'Set x.']
    turns = [('user', 'Set x.'), ('assistant', '41'), ('user', 'One more?'), ('assistant', '42')]
    assert await said(memory) == turns


async def test_memory_is_a_part_of_the_message_and_never_of_the_users_words(session: Open, memory: Memory) -> None:
    await memory.add_fact('The line is by Lamb', 'preference')
    words = 'Recite the line. From the memory: of old days'
    async with session(['All are gone.', 'Lamb.']) as chat:
        result = await chat.send(words)
        [asked, _] = result.messages
        assert asked.text == words
        assert 'The line is by Lamb' in asked.memory
        assert sent(chat, 0) == [f'{words}\n\nFrom the memory:\n{asked.memory}']
        again = await chat.send('Whose is it?')
        assert [message.memory for message in again.messages] == [asked.memory, '', '', '']
        assert sent(chat, 1)[0] == sent(chat, 0)[0]  # what was sent stays a prefix
        assert chat.recalled is not None
        assert chat.recalled.items == ()  # nothing is given twice
        assert [run.info.title for run in await chat.runs()] == ['Whose is it?', words]
        await chat.undo()
        taken = await chat.undo()
    assert taken is not None
    assert taken.task == words


async def test_memory_is_recorded_apart_and_is_there_after_a_resume(session: Open, memory: Memory) -> None:
    await memory.add_fact('The boat is blue', 'preference')
    async with session([ModelUnavailable('down')]) as chat:
        with pytest.raises(ModelUnavailable):
            await chat.send('My boat?')
    async with session(['Blue.'], id=chat.id) as chat:
        assert chat.unfinished is not None
        assert chat.unfinished.message == 'My boat?'
        result = await chat.finish()
        assert 'The boat is blue' in sent(chat, 0)[0]
    assert [(message.text, bool(message.memory)) for message in result.messages] == [
        ('My boat?', True),
        ('Blue.', False),
    ]


async def test_a_view_is_shown_every_event_between_the_start_and_the_end_of_a_turn(session: Open) -> None:
    page = Page()
    async with session([block("print('hi')\nfinal_answer(1)")], view=page) as chat:
        result = await chat.send('Go.')
    start, end = page.events[0], page.events[-1]
    assert isinstance(start, TurnStarted)
    assert isinstance(end, TurnEnded)
    assert (start.message, start.run, end.result) == ('Go.', result.run_id, result)
    assert [kind for kind in ('run_started', 'code', 'output', 'answer', 'run_finished') if kind in page.kinds] == [
        'run_started',
        'code',
        'output',
        'answer',
        'run_finished',
    ]


async def test_a_turn_can_be_streamed(session: Open) -> None:
    async with session(['Hello.']) as chat:
        events = [event async for event in chat.stream('Hi.')]
    assert events[0].kind == 'turn_started'
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].result is not None
    assert events[-1].result.output == 'Hello.'


async def test_questions_and_approvals_go_to_the_view(session: Open, memory: Memory) -> None:
    fact = await memory.add_fact('The boat is blue')
    page = Page('red', True)
    code = f"colour = ask_user('Which colour?')\nforget('{fact.id}')\nfinal_answer(colour)"
    async with session([block(code)], view=page) as chat:
        assert (await chat.send('Paint it.')).output == 'red'
    question, request = page.questions
    assert question == 'Which colour?'
    assert isinstance(request, ApprovalRequest)
    assert request.tool == 'forget'
    assert await memory.facts() == []


async def test_without_a_view_a_call_that_needs_approval_waits_and_is_decided_later(
    session: Open, memory: Memory
) -> None:
    fact = await memory.add_fact('The boat is blue')
    async with session([block(f"final_answer(forget('{fact.id}'))")]) as chat:
        result = await chat.send('Forget it.')
        assert result.ended == 'approval'
        assert (await chat.answer(result.run_id, True)).output == 1
    assert await memory.facts() == []


async def test_a_turn_is_stopped_and_the_next_message_continues_it(session: Open) -> None:
    async def reply(messages: object) -> str:
        if len(requests) == 1:
            await asyncio.sleep(600)
        return 'Blue, then.'

    async with session(reply) as chat:
        assert isinstance(chat.model, ScriptedModel)
        requests = chat.model.requests
        assert not chat.stop()
        turn = asyncio.ensure_future(chat.send('Paint it red.'))
        await until(lambda: len(requests) == 1)
        with pytest.raises(RunBusy):
            await chat.send('Me too.')
        assert chat.stop()
        with pytest.raises(RunStopped):
            await turn
        assert chat.unfinished is not None
        assert (await chat.send('No, blue.')).output == 'Blue, then.'
        assert sent(chat, 1) == ['Paint it red.', 'No, blue.']
        assert chat.unfinished is None


async def test_a_call_that_may_have_had_its_effect_is_repeated_only_if_the_view_agrees(session: Open) -> None:
    calls = 0

    @tool(idempotent=False)
    async def post() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            await asyncio.sleep(600)
        return f'posted {calls}'

    page = Page(False, True)
    async with session([block('final_answer(await post())')], view=page, tools=[post]) as chat:
        turn = asyncio.ensure_future(chat.send('Post it.'))
        await until(lambda: calls == 1)
        assert chat.stop()
        with pytest.raises(RunStopped):
            await turn
        assert (await chat.finish()).waiting
        assert (await chat.finish()).output == 'posted 2'
    assert len(page.questions) == 2


async def test_undo_takes_back_messages_variables_facts_and_files(session: Open, memory: Memory, place: Place) -> None:
    work = place.folder / 'work'
    work.mkdir()
    (work / 'note.txt').write_text('one')
    code = "x = 2\nremember('x is two')\nopen('note.txt', 'w').write('two')\nfinal_answer(x)"
    replies = [block('x = 1\nfinal_answer(x)'), block(code), block('final_answer(x)')]
    async with session(replies, workspace=work, checkpoints=True, mode='all') as chat:
        await chat.send('Set x.')
        await chat.send('Change it.')
        assert (work / 'note.txt').read_text() == 'two'
        taken = await chat.undo()
        assert taken is not None
        assert (taken.task, taken.files) == ('Change it.', ('note.txt',))
        assert (work / 'note.txt').read_text() == 'one'
        assert (await chat.send('What is x?')).output == 1
    assert await memory.facts() == []
    assert ('user', 'Change it.') not in await said(memory)


async def test_a_copy_goes_its_own_way_and_both_can_be_resumed(session: Open) -> None:
    async with session([block('x = 1\nfinal_answer(x)'), block('x += 1\nfinal_answer(x)'), 'New.']) as chat:
        await chat.send('Set x.')
        left = await chat.fork()
        assert (await chat.send('One more.')).output == 2
        copy = chat.id
        assert [turn.text for turn in await chat.turns()] == ['Set x.', '1', 'One more.', '2']
        assert await chat.clear() == copy
        await chat.send('Hello.')
        assert sent(chat, 2) == ['Hello.']
    for id, x in ((left, 1), (copy, 2)):
        async with session([block('final_answer(x)')], id=id) as chat:
            assert chat.is_recorded
            assert (await chat.send('What is x?')).output == x


async def test_another_model_goes_on_with_the_same_conversation(session: Open) -> None:
    async with session([block('x = 1\nfinal_answer(x)')]) as chat:
        await chat.send('Set x.')
        await chat.switch(ScriptedModel([block('final_answer(x + 1)')]))
        assert (await chat.send('And?')).output == 2
        with pytest.raises(AgentError):
            await chat.switch(ScriptedModel([]), checkpoints=True)  # without a workspace
        assert chat.usage.requests == 2
        assert [turn.text for turn in await chat.turns()] == ['Set x.', '1', 'And?', '2']


async def test_a_copy_without_a_turn_is_still_one_with_another_model(session: Open) -> None:
    async with session([block('x = 1\nfinal_answer(x)')]) as chat:
        await chat.send('Set x.')
        await chat.fork()
        await chat.fork()
        await chat.switch(ScriptedModel([block('final_answer(x)')]))
        assert (await chat.send('What is x?')).output == 1


async def test_tasks_are_kept_for_other_sessions(session: Open, memory: Memory) -> None:
    async with session([block("create_task('Paint the boat')\nfinal_answer('noted')")]) as chat:
        await chat.send('Remind me to paint the boat.')
    assert [task.title for task in await memory.tasks()] == ['Paint the boat']


async def test_a_small_model_gets_less_memory_and_no_tools_that_ask(memory: Memory, place: Place) -> None:
    for number in range(20):
        await memory.add_fact(f'Rule {number}: {"word " * 20}', 'instruction')
    tokens = list[int]()
    for small in (False, True):
        model = ScriptedModel(['Yes.'], small=small)
        async with Session(model, memory=memory, journal=place.folder / 'runs.db', view=Page()) as chat:
            await chat.send('Ready?')
            assert chat.recalled is not None
            tokens.append(chat.recalled.tokens)
            assert ('ask_user' in model.requests[0].messages[0].text) is not small
    general, little = tokens
    assert little <= 200 < general <= 800


async def test_the_same_message_again_continues_a_turn_with_files(session: Open) -> None:
    read = block("print('once')\nx = open('/inputs/a.txt').read()")
    async with session([read, ModelUnavailable('down'), block('final_answer(x)')]) as chat:
        files = [File(b'text', name='a.txt')]
        with pytest.raises(ModelUnavailable):
            await chat.send('Read it.', files=files)
        assert (await chat.send('Read it.', files=files)).output == 'text'
        assert len(await chat.runs()) == 1


async def test_a_resumed_conversation_belongs_to_its_own_project(session: Open, memory: Memory) -> None:
    await memory.within('/shop').add_fact('The shop is red', 'instruction')
    async with session(['Hi.'], project='/boats') as chat:
        await chat.send('Hello.')
    async with session(['Hi.'], project='/shop', id=chat.id) as again:
        await again.send('Hello again.')
        assert again.memory.project == '/boats'
        assert again.recalled is not None
        assert again.recalled.items == ()
    async with session(['Hi.'], project='/shop') as other:
        await other.send('Hello.')
        assert other.recalled is not None
        assert [item.entry.text for item in other.recalled.items] == ['The shop is red']


async def test_a_closed_session_says_so(session: Open) -> None:
    async with session(['Hi.']) as chat:
        pass
    with pytest.raises(AgentError, match='closed; open another one with the same id'):
        await chat.send('Hi.')


def test_the_room_loads_no_terminal() -> None:
    code = 'import sys, habilis.assistant; print(*sys.modules)'
    loaded = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout.split()
    assert not {'rich', 'typer', 'prompt_toolkit', 'habilis.cli'} & set(loaded)


def test_the_union_has_every_event_of_a_session() -> None:
    ours = {event for event in Event.__subclasses__() if event.__module__.startswith('habilis.assistant.')}
    assert set(get_args(SessionEvent)) == {*get_args(AgentEvent), *ours}
    assert ours == {TurnStarted, FilesEdited, TurnEnded, TurnAbandoned}
