"""Answers that hold for more than one call: of a cell, of a tool, of a conversation; recorded, and in no other."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from habilis.agent import Agent
from habilis.agent.events import AgentEvent, ApprovalUsed
from habilis.core.errors import ModelError
from habilis.journal import MemoryStore, Store
from habilis.journal.copies import export_run
from habilis.journal.runs import import_foreign_run
from habilis.models import ScriptedModel
from habilis.tools import Approval, ApprovalRequest, Ask, GateCall, tool
from tests.agent.hooks.watching import code

LOOP = code("for n in range(4):\n    put(f'src/{n}')\nput('other')\nfinal_answer('done')")


class Desk:
    """A person who answers from a list, and an agent that asks them."""

    def __init__(self, store: Store | str, *replies: str, answers: list[Any] | None = None) -> None:
        self.asked: list[ApprovalRequest] = []
        self.put: list[str] = []
        given = list(answers or ())

        def approve(request: ApprovalRequest) -> Any:
            self.asked.append(request)
            return given.pop(0)

        @tool(needs_approval=True)
        def put(path: str) -> None:
            """Put."""
            self.put.append(path)

        @tool(needs_approval=True)
        def wipe() -> None:
            """Wipe."""
            self.put.append('wiped')

        @tool(needs_approval=True)
        async def send(path: str) -> str:
            """Send."""
            self.put.append(path)
            return path

        @tool(read_only=True)
        def look(path: str) -> str:
            """Look."""
            return path

        def note(event: AgentEvent) -> None:
            if isinstance(event, ApprovalUsed):
                self.used.append((event.number, event.calls))
            self.kinds.append(event.kind)

        def ask_before_writes(call: GateCall) -> Ask | None:
            return None if call.read_only else Ask()

        self.used: list[tuple[int, int | None]] = []
        self.kinds: list[str] = []
        options: dict[str, Any] = {} if answers is None else {'approve': approve}
        self.agent = Agent[Any](
            ScriptedModel(replies),
            tools=[put, wipe, send, look],
            gates=[ask_before_writes],
            hooks=[note],
            journal=store,
            **options,
        )

    @property
    def paths(self) -> list[object]:
        """What they were asked about."""
        return [request.arguments.get('path') for request in self.asked]


@pytest.mark.parametrize(
    ('answers', 'asked'),
    [
        ([True] * 5, ['src/0', 'src/1', 'src/2', 'src/3', 'other']),
        ([Approval(scope='cell', calls=2)] * 3, ['src/0', 'src/2', 'other']),
        ([Approval(scope='always')], ['src/0']),
        ([Approval(scope='always', prefix='src/'), True], ['src/0', 'other']),
        ([Approval(scope='session')], ['src/0']),
    ],
)
async def test_an_answer_holds_for_as_many_calls_as_it_says(answers: list[Any], asked: list[str]) -> None:
    desk = Desk('off', LOOP, answers=answers)
    async with desk.agent as agent:
        assert (await agent.run('go')).output == 'done'
    assert (desk.paths, len(desk.put)) == (asked, 5)
    assert "put('other')" in desk.asked[0].code


async def test_an_answer_for_a_cell_or_a_tool_holds_for_no_other() -> None:
    cells = [code("put('a')"), code("put('b')\nwipe()\nfinal_answer(1)")]
    desk = Desk('off', *cells, answers=[Approval(scope='cell'), Approval(scope='always'), True])
    async with desk.agent as agent:
        await agent.run('go')
    assert [request.tool for request in desk.asked] == ['put', 'put', 'wipe']


@pytest.mark.parametrize('first', ['src/../etc', 'src/a; rm -rf .', 'src2/a', 'src/$(id)', 'src/a\nrm'])
async def test_a_prefix_covers_nothing_that_only_starts_like_it(first: str) -> None:
    script = code(f"put('src/a')\nput({first!r})\nfinal_answer(1)")
    desk = Desk('off', script, answers=[Approval(scope='always', prefix='src'), True])
    async with desk.agent as agent:
        await agent.run('go')
    assert desk.paths == ['src/a', first]


async def test_answers_of_a_conversation_hold_in_its_later_turns_and_in_no_other_conversation() -> None:
    store = MemoryStore()
    turn = code("put('a')\nfinal_answer(1)")
    desk = Desk(store, turn, turn, answers=[Approval(scope='always')])
    async with desk.agent as agent, agent.conversation('one') as chat:
        await chat.run('go')
        await chat.run('again')
        copy = await chat.fork('copy')
        await copy.close()
    assert desk.paths == ['a']
    later = Desk(store, turn, turn, turn, answers=[True, True])
    async with later.agent as agent:
        async with agent.conversation('one') as chat:
            await chat.run('and again')
            assert later.asked == []
            async with await chat.fork('copy') as copy:
                await copy.run('go')
        async with agent.conversation('two') as other:
            await other.run('go')
    assert later.paths == ['a', 'a']


async def test_an_undone_turn_takes_its_answers_along() -> None:
    turn = code("put('a')\nfinal_answer(1)")
    desk = Desk(MemoryStore(), turn, turn, answers=[Approval(scope='session'), True])
    async with desk.agent as agent, agent.conversation('one') as chat:
        await chat.run('go')
        await chat.undo()
        await chat.run('go')
    assert desk.paths == ['a', 'a']


async def test_a_run_that_nobody_watches_takes_the_same_answers_later() -> None:
    store = MemoryStore()
    desk = Desk(store, LOOP)
    async with desk.agent as agent:
        result = await agent.run('go', run_id='run-1')
        await agent.answer('run-1', Approval(scope='always', prefix='src/'))
    assert (result.ended, desk.put) == ('approval', [])
    again = Desk(store)
    async with again.agent as agent:
        result = await agent.resume('run-1')
        assert [waiting.arguments for waiting in result.waiting] == [{'path': 'other'}]
        await agent.answer('run-1', {'approved': False, 'reason': 'leave it'})
    assert again.put == [f'src/{n}' for n in range(4)]


async def test_answers_of_an_imported_run_hold_for_no_call_that_it_has_not_made() -> None:
    store, other = MemoryStore(), MemoryStore()
    cells = [code("put('a')"), code("put('b')")]
    desk = Desk(store, *cells, answers=[Approval(scope='session')])
    async with desk.agent as agent:
        with pytest.raises(ModelError):  # the script has no more replies
            await agent.run('go', run_id='run-1')
    await import_foreign_run(other, await export_run(store, 'run-1'))
    again = Desk(other, code("put('c')\nfinal_answer(1)"), answers=[True])
    async with again.agent as agent:
        assert (await agent.resume('run-1')).output == 1
    assert again.paths == ['c']


async def test_reads_of_a_loop_pass_and_each_write_is_counted_until_a_person_is_asked_again() -> None:
    script = code('for n in range(5):\n    look(str(n))\n    put(str(n))\nfinal_answer(1)')
    desk = Desk('off', script, answers=[Approval(scope='cell', calls=3), Approval(scope='cell', calls=9)])
    async with desk.agent as agent:
        await agent.run('go')
    assert (desk.paths, [request.earlier for request in desk.asked]) == (['0', '3'], [0, 3])
    assert desk.used == [(2, 3), (3, 3), (5, 12)]
    assert desk.put == ['0', '1', '2', '3', '4']


GATHER = code("""
import asyncio
print(await asyncio.gather(*(send(str(n)) for n in range(6)), return_exceptions=True))
final_answer(1)
""")


async def test_calls_that_are_made_together_are_shown_in_one_question_and_allowed_together() -> None:
    desk = Desk('off', GATHER, answers=[Approval(scope='cell', calls=6)])
    async with desk.agent as agent:
        await agent.run('go')
    [request] = desk.asked
    shown = {str(request.arguments['path']), *(str(call.arguments['path']) for call in request.waiting)}
    assert shown == {str(n) for n in range(6)} == {*desk.put}
    assert 'asyncio.gather' in request.code


async def test_a_no_refuses_all_calls_that_wait_and_leaves_the_rest_of_the_cell_in_peace() -> None:
    desk = Desk('off', GATHER, answers=[Approval(approved=False, reason='not today')])
    async with desk.agent as agent:
        result = await agent.run('go')
    assert (len(desk.asked), desk.put) == (1, [])
    cell = result.steps[0].cell
    assert cell is not None
    assert cell.stdout.count('the user said no: not today') == 6


async def test_stop_refuses_every_later_call_of_the_tool_in_the_cell_without_a_question() -> None:
    loop = 'for n in range(5):\n    try:\n        put(str(n))\n    except Exception as error:\n        print(error)\n'
    answers = [True, Approval(approved=False, scope='cell', reason='enough'), True]
    desk = Desk('off', code(f'{loop}look("a")'), code("put('again')\nfinal_answer(1)"), answers=answers)
    async with desk.agent as agent:
        result = await agent.run('go')
    assert (desk.paths, desk.put) == (['0', '1', 'again'], ['0', 'again'])
    assert (result.steps[0].observation or '').count('the user said no: enough') == 4


async def test_a_loop_that_nobody_watches_is_allowed_by_one_answer_later() -> None:
    desk = Desk(MemoryStore(), LOOP)
    async with desk.agent as agent:
        await agent.run('go', run_id='run-1')
        await agent.answer('run-1', Approval(scope='cell', calls=4))
        result = await agent.resume('run-1')
    assert [waiting.arguments for waiting in result.waiting] == [{'path': 'other'}]
    assert desk.put == [f'src/{n}' for n in range(4)]


FIFTY = """
    import asyncio, os, signal
    from habilis.agent import Agent
    from habilis.models import ScriptedModel
    from habilis.tools import Approval, tool

    @tool(needs_approval=True)
    def put(path: str) -> None:
        if path == '20':
            os.kill(os.getpid(), signal.SIGKILL)
        with open('made', 'a') as file:
            file.write(path + ' ')

    async def main():
        loop = '```python\\nfor n in range(50):\\n    put(str(n))\\nfinal_answer(1)\\n```'
        answer = Approval(scope='cell', calls=40)
        agent = Agent(ScriptedModel([loop]), tools=[put], journal='runs.db', approve=lambda _: answer)
        await agent.run('go', run_id='run-1')

    asyncio.run(main())
"""


@pytest.mark.one_protocol
async def test_a_loop_that_was_killed_goes_on_counting_what_was_allowed(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, '-c', textwrap.dedent(FIFTY)], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / 'made').read_text().split() == [str(n) for n in range(20)]
    desk = Desk(str(tmp_path / 'runs.db'), answers=[Approval(scope='cell', calls=10)])
    async with desk.agent as agent:
        assert (await agent.resume('run-1')).output == 1
    assert (desk.paths, desk.asked[0].earlier) == (['40'], 40)
    assert desk.put == [str(n) for n in range(20, 50)]
    assert desk.kinds.count('approval_asked') == 1
    assert desk.used[-1] == (50, 50)


KILLED = """
    import asyncio, os, signal
    from habilis.agent import Agent
    from habilis.models import ScriptedModel
    from habilis.tools import Approval, tool

    @tool(needs_approval=True)
    def put(path: str) -> None:
        if path == 'b':
            os.kill(os.getpid(), signal.SIGKILL)

    async def main():
        cells = ['```python\\nput("a")\\n```', '```python\\nput("b")\\n```']
        agent = Agent(ScriptedModel(cells), tools=[put], journal='runs.db', approve=lambda _: Approval(scope='always'))
        await agent.conversation('one').run('go', run_id='run-1')

    asyncio.run(main())
"""


@pytest.mark.one_protocol
async def test_answers_survive_a_killed_process(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, '-c', textwrap.dedent(KILLED)], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    desk = Desk(
        str(tmp_path / 'runs.db'), code("put('c')\nfinal_answer(1)"), code("put('d')\nfinal_answer(2)"), answers=[]
    )
    async with desk.agent as agent:
        assert (await agent.resume('run-1')).output == 1
        async with agent.conversation('one') as chat:
            assert (await chat.run('more')).output == 2
    assert (desk.asked, desk.put) == ([], ['b', 'c', 'd'])
