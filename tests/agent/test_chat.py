"""Conversations: turns share messages and variables, in one process and across processes."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from habilis.agent import Agent
from habilis.core.errors import AgentError, CorruptRecord, ModelUnavailable, RunBusy
from habilis.core.limits import Limits
from habilis.flows import flow
from habilis.journal import MemoryStore
from habilis.journal.copies import export_run
from habilis.journal.runs import import_foreign_run
from habilis.models import ScriptedModel
from habilis.models.scripted import Scripted
from habilis.sandbox import Sandbox, snapshot
from habilis.tools import tool
from tests.agent.scripts import block, sent

UNSAVED = 'total = 31\nnumbers = (n for n in range(3))\nfinal_answer(total)'


def agent(*replies: Scripted, journal: Any = 'off', **options: Any) -> Agent[Any]:
    return Agent[Any](ScriptedModel(list(replies)), journal=journal, **options)


def _model(one: Agent[Any]) -> ScriptedModel:
    assert isinstance(one.model, ScriptedModel)
    return one.model


# In one process -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('journal', ['off', 'memory'])
async def test_turns_share_their_variables_and_messages(journal: str) -> None:
    store = MemoryStore() if journal == 'memory' else 'off'
    replies = block(UNSAVED), block('total += 1\nfinal_answer(total)'), block('final_answer((total, next(numbers)))')
    async with agent(*replies, journal=store) as one, one.conversation() as chat:
        assert (await chat.run('Sum it up.')).output == 31
        assert (await chat.run('One more.')).output == 32
        assert (await chat.run('And now?')).output == (32, 0)  # what cannot be saved lives as long as the sandbox
        assert 'Sum it up.' in sent(_model(one), 2)
        assert 'gone' not in sent(_model(one), 2)
        assert [message.role for message in chat.messages] == ['user', 'assistant'] * 3
        assert bool(chat.session) is (journal == 'memory')


def test_a_conversation_without_await() -> None:
    with agent(block('x = 1\nfinal_answer(x)'), block('final_answer(x + 1)')) as one, one.conversation() as chat:
        chat.run_sync('Set x.')
        assert chat.run_sync('And?').output == 2


async def test_a_turn_is_streamed() -> None:
    async with agent(block('x = 1\nfinal_answer(x)'), block('final_answer(x + 1)')) as one, one.conversation() as chat:
        await chat.run('Set x.')
        kinds = [event.kind async for event in chat.stream('And?')]
    assert kinds[-1] == 'run_finished'


async def test_two_conversations_of_an_agent_are_apart() -> None:
    replies = block('x = 1\nfinal_answer(x)'), block("final_answer('x' in globals())")
    async with agent(*replies) as one, one.conversation() as first, one.conversation() as second:
        await first.run('Set x.')
        assert (await second.run('Is it there?')).output is False


async def test_two_turns_at_once_are_refused() -> None:
    entered, released = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        entered.set()
        await released.wait()

    replies = block('await wait()\nfinal_answer(1)'), block('final_answer(2)')
    async with agent(*replies, tools=[wait]) as one, one.conversation() as chat:
        first = asyncio.create_task(chat.run('one'))
        await asyncio.wait_for(entered.wait(), 60)
        with pytest.raises(RunBusy, match='in the middle of a turn'):
            await chat.run('two')
        released.set()
        assert (await first).output == 1
        assert (await chat.run('two')).output == 2


async def test_a_turn_that_raises_leaves_the_conversation_as_it_was() -> None:
    replies = (
        block('total = 1\nfinal_answer(total)'),
        block('total += 10'),
        ModelUnavailable('down'),
        block('total += 10\nfinal_answer(total)'),
    )
    async with agent(*replies) as one, one.conversation() as chat:
        await chat.run('first')
        with pytest.raises(ModelUnavailable):
            await chat.run('second')
        assert (await chat.run('third')).output == 11
        assert 'first' in sent(_model(one), 3)
        assert 'second' not in sent(_model(one), 3)


async def test_a_first_turn_that_raises_leaves_nothing() -> None:
    replies = block('x = 1'), ModelUnavailable('down'), block("final_answer('x' in globals())")
    async with agent(*replies) as one, one.conversation() as chat:
        with pytest.raises(ModelUnavailable):
            await chat.run('first')
        assert (await chat.run('second')).output is False


@pytest.mark.parametrize('journal', ['off', 'memory'])
async def test_a_turn_that_reached_a_limit_is_part_of_the_conversation(journal: str) -> None:
    store = MemoryStore() if journal == 'memory' else 'off'
    async with agent(block('x = 1'), block('final_answer(x)'), journal=store) as one, one.conversation() as chat:
        assert (await chat.run('Take many steps.', max_steps=1)).ended == 'max_steps'
        assert (await chat.run('Go on.')).output == 1
        assert 'Take many steps.' in sent(_model(one), 1)


async def test_a_cell_that_broke_its_sandbox_leaves_the_variables_of_the_turns_before() -> None:
    replies = (
        block('kept = 1\nlost = (n for n in [1])\nfinal_answer(kept)'),
        block('while True: pass'),
        block('final_answer(kept)'),
        block('final_answer(kept)'),
    )
    settings: Any = {'limits': Limits(seconds=1)}
    async with agent(*replies, sandbox_settings=settings) as one, one.conversation() as chat:
        await chat.run('first')
        assert (await chat.run('second')).output == 1
        assert 'These variables were lost: lost' in sent(_model(one), 2)
        assert (await chat.run('third')).output == 1


async def test_conversations_of_agents_without_python_and_with_further_solutions() -> None:
    async with agent('Hello.', 'Ann.', python=False) as one, one.conversation() as chat:
        await chat.run('I am Ann.')
        assert (await chat.run('Who am I?')).output == 'Ann.'
        assert 'I am Ann.' in sent(_model(one), 1)
    replies = [block('x = 1\nfinal_answer(x)')] * 2 + [block('x += 1\nfinal_answer(x)')] * 2
    async with agent(*replies, agree=2) as one, one.conversation() as chat:
        await chat.run('Set x.')
        second = await chat.run('More.')
        assert (second.output, bool(second.agreement)) == (2, True)


async def test_the_files_of_a_temporary_workspace_stay_for_the_conversation() -> None:
    replies = block("open('a', 'w').write('hi')\nfinal_answer(1)"), block("final_answer(open('a').read())")
    async with agent(*replies, workspace=True) as one, one.conversation() as chat:
        await chat.run('Write.')
        assert (await chat.run('Read.')).output == 'hi'


async def test_a_closed_conversation_says_so() -> None:
    async with agent() as one:
        chat = one.conversation()
        await chat.close()
        with pytest.raises(AgentError, match='this conversation is closed'):
            await chat.run('go')
        with pytest.raises(TypeError, match='session must be text'):
            one.conversation(1)  # pyright: ignore[reportArgumentType]


# From the journal -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('how', ['conversation', 'run'])
async def test_a_session_brings_its_variables_back(how: str) -> None:
    store = MemoryStore()
    async with agent(block(UNSAVED), 'In words.', journal=store) as one, one.conversation('s') as chat:
        await chat.run('Sum it up.')
        await chat.run('Say it.')  # runs no code
    async with agent(block('final_answer(total)'), journal=store) as two:
        if how == 'run':
            result = await two.run('And now?', session='s')
        else:
            async with two.conversation('s') as chat:
                result = await chat.run('And now?')
        assert result.output == 31
        assert sent(_model(two), 0).endswith('These variables of earlier turns are gone: numbers.')
        assert 'In words.' in sent(_model(two), 0)


async def test_a_session_has_the_variables_of_its_own_user_only() -> None:
    store = MemoryStore()
    async with agent(block('x = 1\nfinal_answer(x)'), journal=store) as one:
        await one.run('Set x.', session='s', user='ann')
    replies = [block("final_answer('x' in globals())")] * 3
    async with agent(*replies, journal=store) as two:
        assert (await two.run('?', session='s', user='bob')).output is False
        assert (await two.run('?', session='other', user='ann')).output is False
        assert (await two.run('?', session='s', user='ann')).output is True


async def test_a_session_never_continues_a_run_that_was_imported() -> None:
    store, elsewhere = MemoryStore(), MemoryStore()
    async with agent(block('x = 1\nfinal_answer(x)'), journal=elsewhere) as one:
        foreign = await one.run('Set x.', session='s')
    await import_foreign_run(store, await export_run(elsewhere, foreign.run_id))
    async with agent(block("final_answer('x' in globals())"), journal=store) as two:
        assert (await two.run('Is it there?', session='s')).output is False
        assert 'Set x.' not in sent(_model(two), 0)


async def test_variables_that_were_not_saved_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    async with agent(block('x, y = 1, 2\nfinal_answer(x)'), journal=store) as one:
        await one.run('Set them.', session='s')
    monkeypatch.setattr(store, 'blob', _lost)
    async with agent(block('final_answer(3)'), journal=store) as two:
        assert (await two.run('And now?', session='s')).output == 3
        assert 'These variables of earlier turns are gone: x, y.' in sent(_model(two), 0)


async def _lost(run: str, digest: str) -> bytes:
    msg = 'a blob is missing'
    raise CorruptRecord(msg)


async def test_variables_of_another_version_of_the_sandbox_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    async with agent(block('x = 1\nfinal_answer(x)'), journal=store) as one:
        await one.run('Set x.', session='s')
    read = store.blob

    async def of_another_version(run: str, digest: str) -> bytes:
        return snapshot.to_bytes(replace(snapshot.from_bytes(await read(run, digest)), python='Python 2.7'))

    monkeypatch.setattr(store, 'blob', of_another_version)
    async with agent(block('y = 2\nfinal_answer(y)'), journal=store) as two:
        assert (await two.run('And now?', session='s')).output == 2
        assert 'These variables of earlier turns are gone: x.' in sent(_model(two), 0)


async def test_two_processes_do_not_take_a_turn_at_once() -> None:
    store = MemoryStore()
    async with agent(block('final_answer(1)'), journal=store) as one, agent(journal=store) as other:
        under_way = await one.start('first', session='s')
        async with other.conversation('s') as chat:
            with pytest.raises(RunBusy, match=f"'s' is in the middle of a turn, {under_way.id}: wait"):
                await chat.run('second')
        await under_way.close()


async def test_history_without_a_session_says_that_the_variables_are_gone() -> None:
    async with agent(block('x = 1\nfinal_answer(x)'), block('final_answer(2)')) as one:
        first = await one.run('Set x.')
        await one.run('And now?', history=first.messages)
        assert sent(_model(one), 1).endswith('The variables of earlier turns are gone.')


async def test_a_conversation_takes_over_what_was_added_elsewhere() -> None:
    store = MemoryStore()
    replies = block('x = 1\nfinal_answer(x)'), block('x = 2\nfinal_answer(x)'), block('final_answer(x)')
    async with agent(*replies, journal=store) as one, one.conversation('s') as chat:
        await chat.run('first')
        await one.run('elsewhere', session='s')
        assert (await chat.run('third')).output == 2
        assert 'elsewhere' in sent(_model(one), 2)


async def test_a_turn_that_stopped_is_resumed_into_the_conversation() -> None:
    store = MemoryStore()
    replies = block('x = 1'), block('x = 2\nfinal_answer(x)'), block('final_answer(x + 1)')
    async with agent(*replies, journal=store) as one, one.conversation() as chat:
        stopped = await chat.run('first', max_steps=1)
        await one.resume(stopped.run_id)
        assert (await chat.run('second')).output == 3


async def test_a_sandbox_of_the_user_is_restored_only_while_it_is_empty() -> None:
    store = MemoryStore()
    async with agent(block('x = 1\nfinal_answer(x)'), journal=store) as one:
        await one.run('Set x.', session='s')
    async with await Sandbox.create() as sandbox:
        async with agent(block('final_answer(x)'), journal=store, sandbox=sandbox) as two:
            assert (await two.run('?', session='s')).output == 1
        await sandbox.run('x = 7\ndel x\nmine = 1')
        async with agent(block('final_answer(mine)'), journal=store, sandbox=sandbox) as three:
            assert (await three.run('?', session='s')).output == 1
            assert 'gone: x.' in sent(_model(three), 0)


PROGRAM = """
import os, signal, sys
from habilis import Agent, ScriptedModel
from habilis.tools import tool

@tool
def die() -> None:
    'Die.'
    if 'die' in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)

def reply(messages):
    task = next(m.text for m in reversed(messages) if m.role == 'user' and not m.by_agent).split()[0]
    return {
        'first': '```python\\nx = [1]\\nfinal_answer(x)\\n```',
        'second': '```python\\ndef grow(): x.append(2)\\ngrow()\\nfinal_answer(x)\\n```',
        'third': '```python\\ngrow()\\ndie()\\nfinal_answer(x)\\n```',
        'fourth': '```python\\nfinal_answer([*x, 4])\\n```',
    }[task]

with Agent(ScriptedModel(reply), tools=[die], journal=sys.argv[1]) as agent:
    with agent.conversation('s') as chat:
        for task in sys.argv[2].split(','):
            if task.startswith('resume'):
                print(agent.resume_sync('run-third').output, flush=True)
            else:
                print(chat.run_sync(task, run_id=f'run-{task}').output, flush=True)
"""


def _process(file: Path, tasks: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, '-c', textwrap.dedent(PROGRAM), str(file), tasks, *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_turn_that_was_killed_is_resumed_with_the_variables_of_the_turns_before(tmp_path: Path) -> None:
    file = tmp_path / 'runs.db'
    killed = _process(file, 'first,second,third', 'die')
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout.split('\n')[:2] == ['[1]', '[1, 2]']
    after = _process(file, 'resume,fourth')
    assert after.stdout.split('\n')[:2] == ['[1, 2, 2]', '[1, 2, 2, 4]'], after.stderr


# In a flow ------------------------------------------------------------------------------------------------------------


async def test_a_conversation_in_a_flow_is_replayed_with_its_variables() -> None:
    store = MemoryStore()
    crash = [True]

    @flow(name='chatting')
    async def chatting() -> list[object]:
        replies = block('x = 1\nfinal_answer(x)'), 'Words.', block('final_answer(x + 1)')
        model = ScriptedModel(replies)
        async with Agent(model) as one, one.conversation() as chat:
            outputs = [(await chat.run('first')).output, (await chat.run('second')).output]
            if crash.pop():
                msg = 'crash'
                raise OSError(msg)
            model.skip(2)
            return [*outputs, (await chat.run('third')).output]

    with pytest.raises(OSError, match='crash'):
        await (await chatting.start(journal=store, run_id='r')).result()
    crash.append(False)
    assert await chatting.resume('r', journal=store) == [1, 'Words.', 2]


async def test_a_turn_by_name_is_resumed_or_started() -> None:
    store = MemoryStore()
    replies = block('x = 1'), ModelUnavailable('down'), block('x += 1\nfinal_answer(x)'), block('final_answer(x + 1)')
    async with agent(*replies, journal=store) as one, one.conversation() as chat:
        with pytest.raises(ModelUnavailable):
            await chat.run('first', run_id='nightly', resume=True)
        assert (await chat.run('first', run_id='nightly', resume=True)).output == 2
        assert (await chat.run('second')).output == 3


async def test_options_of_the_conversation_are_not_options_of_a_turn() -> None:
    async with agent() as one, one.conversation() as chat:
        with pytest.raises(TypeError, match=r'it is an option of agent.conversation'):
            await chat.run('go', session='s')  # pyright: ignore[reportCallIssue]
        with pytest.raises(TypeError, match="did you mean 'max_steps'"):
            await chat.run('go', max_step=1)  # pyright: ignore[reportCallIssue]


# Going back -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('journal', ['memory', 'runs.db', 'runs/'])
async def test_undo_takes_back_a_turn_with_its_variables_also_for_the_next_process(
    journal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    where: Any = MemoryStore() if journal == 'memory' else journal
    replies = block('x = 1\nfinal_answer(x)'), block('x = 2\nfinal_answer(x)'), block('final_answer(x)')
    async with agent(*replies, journal=where) as one, one.conversation('talk') as chat:
        await chat.run('Set x.')
        await chat.run('Change x.', meta={'turn': 7})
        taken = await chat.undo()
        assert taken is not None
        assert (taken.task, taken.meta, taken.files) == ('Change x.', {'turn': 7}, ())
        assert [message.text for message in chat.messages if message.role == 'user'] == ['Set x.']
        assert (await chat.run('What is x?')).output == 1
        assert 'Change x.' not in sent(_model(one), 2)
    async with agent(block('final_answer(x)'), journal=where) as one, one.conversation('talk') as chat:
        assert await chat.undo() is not None
        assert await chat.undo() is not None
        assert await chat.undo() is None
        assert chat.messages == ()


async def test_a_fork_goes_its_own_way() -> None:
    store = MemoryStore()
    replies = block('x = 1\nfinal_answer(x)'), block('x = 5\nfinal_answer(x)'), block('final_answer(x)')
    async with agent(*replies, journal=store) as one, one.conversation('talk') as chat:
        await chat.run('Set x.')
        async with await chat.fork('copy') as copy:
            assert await copy.undo() is None
            assert (await copy.run('Change x.')).output == 5
        assert (await chat.run('What is x?')).output == 1
    async with agent(block('final_answer(x)'), journal=store) as one, one.conversation('copy') as copy:
        assert (await copy.run('And here?')).output == 5
        assert 'Set x.' in sent(_model(one), 0)


async def test_nothing_is_taken_back_without_a_journal() -> None:
    async with agent('Hi.') as one, one.conversation() as chat:
        with pytest.raises(AgentError, match='journal'):
            await chat.undo()
        with pytest.raises(AgentError, match='journal'):
            await chat.fork()


async def test_a_message_to_a_run_whose_request_failed_is_in_the_next_request() -> None:
    store = MemoryStore()
    async with agent(block("print('once')"), ModelUnavailable('down'), journal=store) as one:
        with pytest.raises(ModelUnavailable):
            await one.run('Do it.', run_id='failed')
    async with agent('Done.', journal=store) as one:
        assert (await one.resume('failed', 'Go on.')).output == 'Done.'
        assert [message.text for message in _model(one).requests[0].messages[1:]][-2:] == ['Output:\nonce', 'Go on.']
    async with agent(journal=store) as one:
        again = await one.resume('failed')
        assert [message.text for message in again.messages][-2:] == ['Go on.', 'Done.']


# The date and the workspace -------------------------------------------------------------------------------------------


async def test_the_date_and_the_workspace_are_said_at_first_and_when_they_have_changed(tmp_path: Path) -> None:
    replies = [block('final_answer(1)'), block('final_answer(2)'), block('open("b", "w").close()\nfinal_answer(3)')]
    async with agent(*replies, block('final_answer(4)'), workspace=tmp_path) as one, one.conversation() as chat:
        for task in ('One.', 'Two.', 'Three.', 'Four.'):
            await chat.run(task)
    asked = [request.messages[-1].text for request in _model(one).requests]
    today = f'Today is {datetime.now().astimezone().date().isoformat()}.'
    assert asked[0] == f'One.\n\n{today} Your code runs in the folder /workspace, which has no files yet.'
    assert asked[1:3] == ['Two.', 'Three.']
    folder = "Your code runs in the folder /workspace, which has: 'b' (0 bytes). Your code can change files in it."
    assert asked[3] == f'Four.\n\n{today} {folder}'
    assert [message.text for message in chat.messages if message.role == 'user'] == ['One.', 'Two.', 'Three.', 'Four.']


@pytest.mark.parametrize('nested', [False, True])
async def test_a_resumed_run_says_the_date_and_the_files_that_it_started_with(nested: bool, tmp_path: Path) -> None:
    """Else its prompt would change under the cache, and with it what the replies were an answer to."""
    store = MemoryStore()
    replies = [block('open("made.txt", "w").close()'), ModelUnavailable('down'), block('final_answer(1)')]
    async with agent(*replies, workspace=tmp_path, journal='off' if nested else store) as one:

        @flow(name='dated')
        async def work() -> Any:
            return (await one.run('go')).output

        started = (await work.start(journal=store, run_id='r')).result() if nested else one.run('go', run_id='r')
        with pytest.raises(ModelUnavailable):
            await started
        if nested:
            assert await work.resume('r', journal=store) == 1
        else:
            assert (await one.resume('r')).output == 1
    first = [request.messages[1].text for request in _model(one).requests]
    assert 'which has no files yet' in first[0]
    assert len(first) == 3
    assert len(set(first)) == 1
