"""A call that needs a person: the run pauses in the middle of its code, for as long as it takes."""

import asyncio
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from habilis.agent import Agent, Result
from habilis.agent.durable.trajectory import read_trajectories
from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.core.errors import JournalError, ModelError, RunBusy, RunNotFound
from habilis.core.limits import Limits
from habilis.journal import MemoryStore, Store
from habilis.journal.runs import read_run
from habilis.journal.stores.sqlite import SqliteStore
from habilis.models import ScriptedModel
from habilis.sandbox import Sandbox
from habilis.sandbox.host.workers import WORKERS
from habilis.tools import ApprovalRequest, Ask, Files, GateCall, tool
from tests.agent.hooks.watching import Seen, code
from tests.waiting import until


class House:
    """An agent, and what its tools have done."""

    def __init__(self, store: Store, *replies: str, given: int = 0, **options: Any) -> None:
        self.done: list[str] = []
        self.model = ScriptedModel(replies[given:])
        self.seen = Seen()

        @tool
        def look(name: str) -> str:
            """Look."""
            self.done.append(f'look {name}')
            return f'seen {name}'

        @tool(needs_approval=True)
        def remove(name: str) -> str:
            """Remove."""
            self.done.append(f'remove {name}')
            return f'removed {name}'

        @tool(needs_approval=True, idempotent=False)
        async def pay(name: str) -> str:
            """Pay."""
            self.done.append(f'pay {name}')
            return f'paid {name}'

        @tool(idempotent=False)
        async def slow(name: str) -> str:
            """Take its time."""
            self.done.append(f'slow {name}')
            await asyncio.sleep(0.3)
            self.done.append(f'slow {name} done')
            return f'slowly {name}'

        self.agent = Agent[Any](
            self.model, tools=[look, remove, pay, slow], journal=store, hooks=[self.seen], **options
        )


async def waits(store: Store, *replies: str, **options: Any) -> Result[Any]:
    """The run until it waits."""
    house = House(store, *replies, **options)
    async with house.agent as agent:
        result = await agent.run('go', run_id='run-1')
    assert (result.ended, result.output) == ('approval', None)
    assert (await store.info('run-1')).status == 'waiting'
    return result


async def test_without_a_person_the_run_pauses_and_resumes_inside_the_cell() -> None:
    store = MemoryStore()
    script = code("a = look('a')\nb = remove('b')\nc = look('c')\nfinal_answer([a, b, c])")
    house = House(store, script)
    async with house.agent as agent:
        result = await agent.run('go', run_id='run-1')
    assert (result.ended, house.done) == ('approval', ['look a'])
    [waiting] = result.waiting
    assert (waiting.tool, waiting.question) == ('remove', 'May remove be called?')
    assert (waiting.arguments, "b = remove('b')" in waiting.code) == ({'name': 'b'}, True)
    assert (await store.info('run-1')).status == 'waiting'
    other = House(store, script, given=1)
    async with other.agent as agent:
        await agent.answer('run-1', True)
        assert (await store.info('run-1')).status == 'stopped'
        result = await agent.resume('run-1')
    assert result.output == ['seen a', 'removed b', 'seen c']
    assert other.done == ['remove b', 'look c']
    assert [call.decision for call in result.steps[0].calls] == ['allowed', 'approved', 'allowed']


@pytest.mark.parametrize(
    ('answer', 'said'),
    [
        (False, 'the user said no'),
        ({'approved': False, 'reason': 'keep b'}, 'the user said no: keep b'),
        ({'approved': False}, 'the user said no'),
    ],
)
async def test_a_refusal_is_an_error_in_the_code(answer: Json, said: str) -> None:
    store = MemoryStore()
    script = code("try:\n    remove('b')\nexcept Exception as e:\n    final_answer(str(e))")
    await waits(store, script)
    other = House(store, script, given=1)
    async with other.agent as agent:
        await agent.answer('run-1', answer)
        result = await agent.resume('run-1')
    assert result.unwrap().endswith(said)
    assert other.done == []
    assert result.steps[0].calls[0].decision == 'refused'


async def test_the_reason_of_a_person_who_refuses_at_once_is_recorded() -> None:
    store = MemoryStore()
    script = code("try:\n    remove('b')\nexcept Exception as e:\n    print(e)")

    def approve(request: ApprovalRequest) -> Approval:
        return Approval(approved=False, reason=f'keep {request.arguments["name"]}')

    house = House(store, script, approve=approve)
    async with house.agent as agent:
        with pytest.raises(ModelError):
            await agent.run('go', run_id='run-1')
    other = House(store, code('final_answer(1)'))
    async with other.agent as agent:
        result = await agent.resume('run-1')
    assert 'the user said no: keep b' in (result.steps[0].observation or '')


async def test_a_run_resumed_without_an_answer_keeps_waiting() -> None:
    store = MemoryStore()
    script = code("look('a')\nfinal_answer(remove('b'))")
    await waits(store, script)
    for _ in range(2):
        other = House(store, script, given=1)
        async with other.agent as agent:
            result = await agent.resume('run-1')
        assert (result.ended, len(result.waiting), other.done) == ('approval', 1, [])
        assert (await store.info('run-1')).status == 'waiting'
    asked = [record for record in await store.load('run-1') if record.kind == 'asked']
    assert len(asked) == 1


async def test_several_approvals_are_requested_at_once_and_answered_one_by_one() -> None:
    store = MemoryStore()
    script = code("import asyncio\nfinal_answer(await asyncio.gather(pay('a'), pay('b'), slow('c')))")
    house = House(store, script)
    async with house.agent as agent:
        result = await agent.run('go', run_id='run-1')
    assert len(result.waiting) == 2
    assert house.done == ['slow c', 'slow c done'], 'what was under way is finished'
    other = House(store, script, given=1)
    async with other.agent as agent:
        with pytest.raises(JournalError, match='several'):
            await agent.answer('run-1', True)
        await agent.answer('run-1', True, path=result.waiting[0].path)
        again = await agent.resume('run-1')
        assert (again.ended, other.done) == ('approval', ['pay a'])
        assert [waiting.path for waiting in again.waiting] == [result.waiting[1].path]
        await agent.answer('run-1', True)
        result = await agent.resume('run-1')
    assert result.output == ['paid a', 'paid b', 'slowly c']
    assert other.done == ['pay a', 'pay b']


SWALLOWERS = [
    "try:\n    remove('b')\nexcept Exception:\n    look('swallowed')\nfinal_answer(1)",
    "try:\n    remove('b')\nexcept BaseException:\n    look('swallowed')\nfinal_answer(1)",
    "try:\n    remove('b')\nfinally:\n    look('swallowed')\n    final_answer(1)",
    "try:\n    await pay('b')\nexcept BaseException:\n    look('swallowed')\nfinal_answer(1)",
    "try:\n    await pay('b')\nfinally:\n    look('swallowed')\n    final_answer(1)",
    "import asyncio\nr = await asyncio.gather(pay('b'), return_exceptions=True)\nlook('swallowed')\nfinal_answer(1)",
    """import asyncio
try:
    async with asyncio.TaskGroup() as group:
        group.create_task(pay('b'))
except BaseException:
    look('swallowed')
final_answer(1)""",
    """import contextlib
class Thing:
    def __del__(self):
        look('swallowed')
thing = Thing()
with contextlib.suppress(BaseException):
    remove('b')
final_answer(1)""",
]


@pytest.mark.parametrize('source', SWALLOWERS)
async def test_the_code_cannot_catch_the_pause(source: str) -> None:
    store = MemoryStore()
    house = House(store, code(source))
    async with house.agent as agent:
        result = await agent.run('go', run_id='run-1')
        await asyncio.sleep(0.05)
    assert (result.ended, house.done) == ('approval', [])
    assert not [record for record in await store.load('run-1') if 'look' in record.path]


async def test_a_concurrent_loop_does_not_keep_the_run_from_pausing() -> None:
    store = MemoryStore()
    script = code(
        'import asyncio\nasync def poll():\n    while True:\n        look("x")\n        await asyncio.sleep(0.001)\n'
        "await asyncio.gather(poll(), pay('b'))"
    )
    await waits(store, script)


@pytest.mark.parametrize('call', ["remove('b')", "await pay('b')"])
async def test_a_paused_run_leaves_nothing_running(call: str) -> None:
    store = MemoryStore()
    house = House(store, code(f"look('a')\n{call}"))
    await Agent(ScriptedModel([code('final_answer(1)')]), journal=store).run('warm up')
    tasks, threads = len(asyncio.all_tasks()), _busy_threads()
    result = await house.agent.run('go')
    assert result.ended == 'approval'
    await until(lambda: len(asyncio.all_tasks()) == tasks and _busy_threads() <= threads)
    await house.agent.close()


def _busy_threads() -> int:
    """Threads of sandboxes that have something to do."""
    started = [thread for thread in threading.enumerate() if re.fullmatch(r'habilis-\d+', thread.name)]
    assert started
    return len(started) - len(WORKERS._idle)  # pyright: ignore[reportPrivateUsage]


async def test_a_sandbox_of_the_user_is_rolled_back_and_stays_usable() -> None:
    store = MemoryStore()
    async with await Sandbox.create('wasm') as sandbox:
        script = [code('x = 1'), code("x = 2\nfinal_answer([x, remove('b')])")]
        await waits(store, *script, sandbox=sandbox)
        assert (await sandbox.run('x')).value == 1
        await sandbox.run('x = 77')
        other = House(store, *script, given=2, sandbox=sandbox)
        async with other.agent as agent:
            await agent.answer('run-1', True)
            result = await agent.resume('run-1')
        assert result.output == [2, 'removed b']
        assert not sandbox.closed


async def test_a_person_who_answered_is_not_asked_again_after_a_crash() -> None:
    store = MemoryStore()
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.tool)
        return True

    script = code("remove('b')\nraise SystemExit(look('c'))")
    house = House(store, script, approve=approve)
    dying = _Dying(store, after='look')
    dying_house = House(dying, script, approve=approve)
    with pytest.raises(Exception, match='power'):
        await dying_house.agent.run('go', run_id='run-1')
    assert (asked, dying_house.done) == (['remove'], ['remove b', 'look c'])
    other = House(store, script, code('final_answer(1)'), given=1, approve=approve)
    async with other.agent as agent:
        result = await agent.resume('run-1')
    assert (result.output, asked, other.done) == (1, ['remove'], ['look c'])
    await house.agent.close()


class _Dying(MemoryStore):
    """Fails when the result of a tool is recorded, as if the machine had lost its power."""

    def __init__(self, inner: MemoryStore, *, after: str) -> None:
        super().__init__()
        self._runs = inner._runs  # pyright: ignore[reportPrivateUsage]
        self._after = after
        self.dead = False

    async def append(self, run: str, records: Any, **rest: Any) -> None:
        self.dead = self.dead or any(self._after in record.path and record.kind == 'done' for record in records)
        if self.dead:
            msg = 'power'
            raise JournalError(msg)
        await super().append(run, records, **rest)


async def test_a_change_that_was_made_is_not_previewed_again_when_the_code_reruns(tmp_path: Path) -> None:
    (tmp_path / 'x').write_text('one two')
    store = MemoryStore()
    replies = [code("update_file('x', 'one', '1')\nupdate_file('x', 'two', '2')\nfinal_answer(read_file('x'))")]
    files = Files(tmp_path, needs_approval=True)
    async with Agent(ScriptedModel(replies), tools=[files], journal=store) as agent:
        await agent.run('go', run_id='run-1')
        await agent.answer('run-1', True)
        await agent.resume('run-1')
        [trajectory] = await read_trajectories(await read_run(store, 'run-1'))
        calls = [(call.tool, call.decision) for call in trajectory.turns[0].calls]
        assert calls == [('update_file', 'approved'), ('update_file', 'waiting')], 'and no call of a preview'
        await agent.answer('run-1', True)
        assert (await agent.resume('run-1')).output == '1 2'


async def test_a_file_that_changed_before_the_answer_came_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / 'x'
    file.write_text('old')
    write = "try:\n    write_file('x', 'mine')\nexcept Exception as e:\n    print(e)"
    store, model = MemoryStore(), ScriptedModel([code(write), code(write)])
    async with Agent(model, tools=[Files(tmp_path, needs_approval=True)], journal=store) as agent:
        await agent.run('go', run_id='run-1')
        file.write_text('theirs')
        await agent.answer('run-1', True)
        result = await agent.resume('run-1')
        assert 'no longer what the user was shown' in str(result.steps[0].observation)
        assert (result.ended, file.read_text()) == ('approval', 'theirs'), 'the second call is asked about again'
        await agent.answer('run-1', True)
        with pytest.raises(ModelError):
            await agent.resume('run-1')
    assert file.read_text() == 'mine'


async def test_a_gate_may_ask_and_its_question_is_shown() -> None:
    store = MemoryStore()

    def gate(call: GateCall) -> Ask | None:
        return Ask(f'Really {call.arguments["name"]}?') if call.tool == 'look' else None

    script = code("final_answer(look('a'))")
    result = await waits(store, script, gates=[gate])
    assert result.waiting[0].question == 'Really a?'
    other = House(store, script, given=1, gates=[gate])
    async with other.agent as agent:
        await agent.answer('run-1', {'approved': True})
        assert (await agent.resume('run-1')).output == 'seen a'


async def test_waiting_does_not_count_towards_the_time_limit_of_the_code() -> None:
    store = MemoryStore()
    limits = Limits(seconds=0.2)
    await waits(
        store,
        code("import asyncio\nfinal_answer(await asyncio.gather(pay('a'), slow('b')))"),
        sandbox_settings={'limits': limits},
    )
    done = [record for record in await store.load('run-1') if record.kind == 'done' and 'slow' in record.path]
    assert len(done) == 1, 'what was under way had the time that it needed'


async def test_invalid_answers_and_answers_of_other_users_are_refused() -> None:
    store = MemoryStore()
    await waits(store, code("remove('b')"))
    house = House(store)
    async with house.agent as agent:
        several: list[Json] = ['yes', 1, None, [True]]
        for nonsense in several:
            with pytest.raises(JournalError, match='True or False'):
                await agent.answer('run-1', nonsense)
        with pytest.raises(JournalError, match='no open question at'):
            await agent.answer('run-1', True, path='elsewhere')
        with pytest.raises(RunNotFound):
            await agent.answer('run-1', True, user='bob')
        with pytest.raises(RunNotFound):
            await agent.answer('run-2', True)
        await agent.answer('run-1', True)
        with pytest.raises(JournalError, match='no open question'):
            await agent.answer('run-1', True)


async def test_a_run_stepped_manually_can_wait_too() -> None:
    store = MemoryStore()
    house = House(store, code("look('a')\nfinal_answer(remove('b'))"))
    async with house.agent as agent:
        run = await agent.start('go')
        result = await run.step()
        assert result is not None
        assert result.ended == 'approval'
        await agent.answer(run.id, True)
        assert (await agent.resume(run.id)).output == 'removed b'
    assert house.done == ['look a', 'remove b']


async def test_a_run_cannot_be_answered_while_another_process_holds_it() -> None:
    store = MemoryStore()
    house = House(store, code("look('a')"), code("remove('b')"))
    async with house.agent as agent:
        run = await agent.start('go')
        await run.step()
        with pytest.raises(RunBusy):
            await agent.answer(run.id, True)


PROGRAM = """
import asyncio, sys
from habilis.agent import Agent
from habilis.journal.stores.sqlite import SqliteStore
from habilis.models import ScriptedModel
from habilis.tools import tool

@tool
def look(name: str) -> str:
    print('look', name, flush=True)
    return 'seen ' + name

@tool(needs_approval=True)
def remove(name: str) -> str:
    print('remove', name, flush=True)
    return 'removed ' + name

REPLY = '''```python
def twice(text): return text * 2
a = look('a')
b = remove('b')
final_answer([twice(a), b])
```'''

def agent(store, *replies):
    return Agent(ScriptedModel(replies), tools=[look, remove], journal=store)
"""


def in_a_process(file: Path, body: str) -> list[str]:
    """What a process prints."""
    source = PROGRAM + textwrap.dedent(body)
    done = subprocess.run([sys.executable, '-c', source, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.one_protocol
def test_the_process_may_exit_while_a_run_waits(tmp_path: Path) -> None:
    file = tmp_path / 'runs.db'
    first = in_a_process(
        file,
        """
        result = agent(SqliteStore(sys.argv[1]), REPLY).run_sync('go', run_id='run-1')
        print(result.ended, len(result.waiting))
        """,
    )
    assert first == ['look a', 'approval 1']
    second = in_a_process(
        file,
        """
        async def main():
            one = agent(SqliteStore(sys.argv[1]))
            await one.answer('run-1', True)
            await one.close()
        asyncio.run(main())
        """,
    )
    assert second == []
    third = in_a_process(file, "print(asyncio.run(agent(SqliteStore(sys.argv[1])).resume('run-1')).output)")
    assert third == ['remove b', "['seen aseen a', 'removed b']"]


def test_the_store_on_disk_is_the_same(tmp_path: Path) -> None:
    async def run() -> Result[Any]:
        store = SqliteStore(tmp_path / 'runs.db')
        try:
            return await waits(store, code("remove('b')"))
        finally:
            await store.close()

    assert asyncio.run(run()).waiting[0].tool == 'remove'
