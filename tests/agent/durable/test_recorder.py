"""Calls inside code that has to be run again: what is answered from the record, and what people are asked."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from habilis.agent import Agent, Result, RunLimits
from habilis.core.errors import JournalError
from habilis.core.limits import Limits
from habilis.journal import MemoryStore, Record
from habilis.models import ScriptedModel
from habilis.sandbox.options import SandboxSettings
from habilis.tools import Deny, GateCall, log, todo_toolset, tool
from tests.agent.hooks.watching import code


class PowerCut(JournalError):
    """The process is gone, as far as the store can tell."""


class Cut(MemoryStore):
    """Loses its power when a record of this kind and path would be written."""

    def __init__(self, inner: MemoryStore, kind: str, path: str) -> None:
        super().__init__()
        self._runs = inner._runs  # pyright: ignore[reportPrivateUsage]
        self._at = kind, path
        self._dead = False

    async def append(self, run: str, records: Sequence[Record], **rest: Any) -> None:
        self._dead = self._dead or any(
            (record.kind, self._at[1] in record.path) == (self._at[0], True) for record in records
        )
        if self._dead:
            raise PowerCut
        await super().append(run, records, **rest)


class World:
    """Tools, and what they have done."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.name = 'ann'

        class Own(Exception):
            """Cannot be found by its name."""

        @tool(idempotent=False)
        async def send(to: str) -> str:
            """Send."""
            self.done.append(f'send {to}')
            return f'sent to {to}'

        @tool
        def whom() -> str:
            """Whom to send to: it is another one each time."""
            self.done.append('whom')
            return self.name

        @tool
        async def get(n: int) -> int:
            """Get."""
            await asyncio.sleep(0.01 * (3 - n))
            self.done.append(f'get {n}')
            if n == 2:
                raise Own('two')
            return n

        @tool
        def last() -> None:
            """The last one."""
            self.done.append('last')

        self.tools = [send, whom, get, last]

    def agent(self, store: MemoryStore, *replies: str, **options: Any) -> Agent[Any]:
        return Agent[Any](ScriptedModel(replies), tools=self.tools, journal=store, **options)


async def cut_and_resumed(
    source: str, *, kind: str = 'done', path: str = 'last(', replies: Sequence[str] = (), **options: Any
) -> tuple[World, Result[Any], MemoryStore]:
    """The run after its process died where the record of this kind and path would have been written."""
    store, first, second = MemoryStore(), World(), World()
    second.name = 'bob'
    async with first.agent(Cut(store, kind, path), code(source), **options) as agent:
        with pytest.raises(PowerCut):
            await agent.run('go', run_id='run-1')
    async with second.agent(store, *replies, **options) as agent:
        result = await agent.resume('run-1')
    return second, result, store


async def test_finished_calls_are_answered_in_any_order() -> None:
    source = """import asyncio
async def safely(n):
    try:
        return await get(n)
    except Exception as error:
        return type(error).__name__, str(error)
found = await asyncio.gather(*(safely(n) for n in [1, 2, 0, 1]))
last()
final_answer(found)"""
    world, result, _ = await cut_and_resumed(source)
    assert world.done == ['last']
    assert result.output == [1, ('ToolError', 'Own: two'), 0, 1]


async def test_the_code_sees_the_same_error_again() -> None:
    source = """
try:
    await get(2)
except Exception as error:
    seen = type(error).__name__, str(error)
print(seen)
last()
final_answer(seen)"""
    _, result, _ = await cut_and_resumed(source)
    world = World()
    async with world.agent(MemoryStore(), code(source)) as agent:
        assert (await agent.run('go')).output == result.output


async def test_a_call_that_may_have_taken_effect_is_asked_about() -> None:
    source = "r = await send('ann')\nfinal_answer(r)"
    world, result, store = await cut_and_resumed(source, path='send(')
    assert (result.ended, world.done) == ('approval', [])
    [waiting] = result.waiting
    assert "send(to='ann') was running when the process died" in waiting.question
    assert (await store.info('run-1')).status == 'waiting'
    async with world.agent(store) as agent:
        with pytest.raises(JournalError, match='again'):
            await agent.answer('run-1', True)
        await agent.answer('run-1', {'value': 'sent before'})
        assert (await agent.resume('run-1')).output == 'sent before'
    assert world.done == []


async def test_a_call_is_repeated_if_a_person_allows_it() -> None:
    world, _, store = await cut_and_resumed("final_answer(await send('ann'))", path='send(')
    async with world.agent(store) as agent:
        await agent.answer('run-1', {'again': True})
        assert (await agent.resume('run-1')).output == 'sent to ann'
    assert world.done == ['send ann']


async def test_a_call_with_another_argument_is_asked_about() -> None:
    """What `whom` gave is in the record; the world outside the record has changed."""
    source = "import random, time\nto = 'n%d' % time.monotonic_ns()\nr = await send(to)\nlast()\nfinal_answer(r)"
    world, result, store = await cut_and_resumed(source)
    assert (result.ended, world.done) == ('approval', [])
    assert 'with different arguments' in result.waiting[0].question
    async with world.agent(store) as agent:
        await agent.answer('run-1', {'value': 'sent'})
        again = await agent.resume('run-1')
    assert again.ended in {'answer', 'approval'}
    assert [done for done in world.done if done.startswith('send')] == []


async def test_the_code_gets_the_recorded_results_of_tools() -> None:
    world, result, _ = await cut_and_resumed('w = whom()\nr = await send(w)\nlast()\nfinal_answer(r)')
    assert (result.output, world.done) == ('sent to ann', ['last'])


async def test_idempotent_tools_are_repeated_without_asking() -> None:
    world, result, _ = await cut_and_resumed('final_answer(whom())', path='whom(')
    assert (result.output, world.done) == ('bob', ['whom'])


async def test_a_denial_of_a_gate_is_recorded() -> None:
    allowed = [False, True]

    def gate(call: GateCall) -> Deny | None:
        return None if call.tool != 'whom' or allowed.pop(0) else Deny('not now')

    source = 'try:\n    w = whom()\nexcept Exception as e:\n    w = str(e)\nlast()\nfinal_answer(w)'
    world, result, _ = await cut_and_resumed(source, gates=[gate])
    assert 'not now' in result.unwrap()
    assert (world.done, allowed) == (['last'], [])


async def test_code_that_timed_out_is_rerun_with_its_recorded_calls() -> None:
    store, world = MemoryStore(), World()
    slow = 'import time\nw = whom()\ntime.sleep(60 if whom() != "bob" else 0)\nfinal_answer(w)'
    async with world.agent(store, code(slow)) as agent:
        result = await agent.run('go', run_id='run-1', limits=RunLimits(seconds=3))
        assert result.ended == 'max_seconds'
    records = await store.load('run-1')
    calls = [record for record in records if 'whom(' in record.path and record.kind == 'done']
    assert len(calls) == 2


async def test_state_of_tools_is_restored() -> None:
    store = MemoryStore()
    write = "todo_write([{'id': 1, 'text': 'a', 'status': 'pending'}])\nprint(1)"
    async with Agent(ScriptedModel([code(write)]), tools=[todo_toolset()], journal=store) as agent:
        await agent.run('go', run_id='run-1', max_steps=1)
    async with Agent(
        ScriptedModel([code('final_answer(todo_read())')]), tools=[todo_toolset()], journal=store
    ) as agent:
        assert (await agent.resume('run-1')).output == [{'id': 1, 'text': 'a', 'status': 'pending'}]


async def test_state_of_tools_that_cannot_be_restored_does_not_end_the_run() -> None:
    kept: list[int] = []

    @tool(in_memory=True)
    def keep(n: int) -> int:
        """Keep."""
        kept.append(n)
        return n

    @tool(name='keep', in_memory=True)
    def keep_text(n: list[str]) -> int:
        """Keep something else."""
        return len(n)

    store = MemoryStore()
    async with Agent(ScriptedModel([code('keep(1)')]), tools=[keep], journal=store) as agent:
        await agent.run('go', run_id='run-1', max_steps=1)
    async with Agent(ScriptedModel([code('final_answer(1)')]), tools=[keep_text], journal=store) as agent:
        assert (await agent.resume('run-1')).output == 1
    assert kept == [1]


async def test_usage_of_nested_agents_is_counted_once() -> None:
    store = MemoryStore()
    model = ScriptedModel([code('x = 1'), code('final_answer(x)')])
    async with Agent(model, journal=store) as agent:
        stopped = await agent.run('go', max_steps=1)
        result = await agent.resume(stopped.run_id)
        assert result.usage.requests == 2
        assert agent.ledger.total.requests == 2


async def test_variables_that_crash_the_snapshot_do_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('habilis.sandbox.host.interpreter.SAVE_SECONDS', 0.5)
    store = MemoryStore()
    hostile = 'class Bad:\n    def __reduce__(self):\n        while True: pass\nbad = Bad()'
    replies = [code('good = 1'), code(hostile), code('final_answer(good)'), code('final_answer(good)')]
    settings = SandboxSettings(limits=Limits(seconds=0.5))
    async with Agent(ScriptedModel(replies), journal=store, sandbox_settings=settings) as agent:
        assert (await agent.run('go')).output == 1


async def test_manual_steps_that_could_not_stop_are_replayed_as_such() -> None:
    store = MemoryStore()
    async with Agent(ScriptedModel(['I am done.', code('x = 1\nprint(x)')]), journal=store) as agent:
        run = await agent.start('go')
        assert await run.step(can_stop=False) is None
        assert await run.step(can_stop=False) is None
    async with Agent(ScriptedModel([code('final_answer(x)')]), journal=store) as agent:
        assert (await agent.resume(run.id)).output == 1


async def test_log_lines_of_a_recorded_call_are_there_once() -> None:
    @tool
    def count() -> int:
        """Count."""
        log('counting')
        return 1

    store = MemoryStore()
    async with Agent(ScriptedModel([code('count()'), code('final_answer(1)')]), tools=[count], journal=store) as agent:
        result = await agent.run('go', run_id='r')
        again = await agent.resume('r')
    assert (
        [call.log for call in result.steps[0].calls] == [('counting',)] == [call.log for call in again.steps[0].calls]
    )
