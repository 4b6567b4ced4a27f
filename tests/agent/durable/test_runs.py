"""Runs in a journal: what goes wrong, whose they are, what they are part of, and what kill -9 leaves."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from habilis.agent import Agent, RunLimits
from habilis.agent.team import plan_and_implement
from habilis.core.errors import (
    AgentError,
    EmptyReply,
    ModelAccessDenied,
    ModelUnavailable,
    RunBusy,
    RunChanged,
    RunNotFound,
    StoreUnavailable,
)
from habilis.journal import Journal, MemoryStore, Record, RunInfo, Scope
from habilis.journal.copies import copy_run
from habilis.journal.stores.sqlite import SqliteStore
from habilis.models import FunctionCall, Message, Reply, ScriptedModel
from habilis.models.scripted import Scripted
from habilis.sandbox import Sandbox
from habilis.tools import ApprovalRequest, tool
from tests.agent.hooks.watching import Seen, code

ANSWER = code('final_answer(42)')


def agent(store: MemoryStore | SqliteStore | str, *replies: Scripted, **options: Any) -> Agent[Any]:
    return Agent[Any](ScriptedModel(replies), journal=store, **options)


# What goes wrong ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('error', [ModelUnavailable('down'), ModelAccessDenied('wrong key')])
async def test_a_model_that_fails_is_asked_again_and_nothing_else(error: Exception) -> None:
    store = MemoryStore()
    async with agent(store, code('x = 1'), error) as first:
        with pytest.raises(type(error), match=str(error)):
            await first.run('go', run_id='run-1')
    info = await store.info('run-1')
    assert (info.status, str(error) in info.error) == ('failed', True)
    for _ in range(2):  # it is still down
        async with agent(store, error) as again:
            with pytest.raises(type(error)):
                await again.resume('run-1')
    model = ScriptedModel([code('final_answer(x)')])
    async with Agent(model, journal=store) as last:
        result = await last.resume('run-1')
    assert (result.output, len(model.requests), len(result.steps)) == (1, 1, 2)
    assert (await store.info('run-1')).status == 'done'  # and not only returned
    async with agent(store) as other:
        assert (await other.resume('run-1')).output == 1


async def test_a_process_that_dies_right_after_the_model_has_failed_asks_it_again() -> None:
    store = MemoryStore()
    async with agent(store, code('x = 1'), ModelUnavailable('down')) as first:
        with pytest.raises(ModelUnavailable):
            await first.run('go', run_id='run-1')
    records = await store.load('run-1')
    failed = next(record.seq for record in records if record.kind == 'failed')
    copy = await copy_run(store, await store.info('run-1'), upto=failed)
    async with agent(store, code('final_answer(x)')) as last:
        assert (await last.resume(copy.run)).output == 1


async def test_a_model_with_an_empty_reply_is_asked_again() -> None:
    store = MemoryStore()
    async with agent(store, code('x = 5'), '', '', '') as first:
        with pytest.raises(EmptyReply):
            await first.run('go', run_id='run-1')
    async with agent(store, code('final_answer(x)')) as last:
        assert (await last.resume('run-1')).output == 5


async def test_a_cancelled_run_is_stopped_and_leaves_nothing_behind() -> None:
    store = MemoryStore()
    begun = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        begun.set()
        await asyncio.sleep(60)

    async with agent(store, code('x = 1\nawait wait()'), tools=[wait]) as first:
        tasks = asyncio.all_tasks()
        work = asyncio.ensure_future(first.run('go', run_id='run-1'))
        await begun.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert (await store.info('run-1')).status == 'stopped'
        assert not (await store.lease('run-1')).until
        assert asyncio.all_tasks() == tasks

    @tool(name='wait')
    async def no_wait() -> None:
        """Wait no more."""

    async with agent(store, code('final_answer(x)'), tools=[no_wait]) as again:
        result = await again.resume('run-1')
    assert (result.output, len(result.steps)) == (1, 2)


def yes(request: ApprovalRequest) -> bool:
    return bool(request.tool)


class Failing(MemoryStore):
    """A store that is lost after some appends."""

    def __init__(self, inner: MemoryStore, left: int) -> None:
        super().__init__()
        self._runs = inner._runs  # pyright: ignore[reportPrivateUsage]
        self.left = left

    async def append(self, run: str, records: Sequence[Record], **rest: Any) -> None:
        if self.left <= 0:
            msg = 'the journal cannot be used: the disk is full'
            raise StoreUnavailable(msg)
        self.left -= 1
        await super().append(run, records, **rest)


async def test_a_store_that_is_lost_at_any_record_is_a_clear_error_and_the_run_can_be_resumed() -> None:
    done: list[str] = []

    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        done.append('add')
        return a + b

    @tool(needs_approval=True, side='both')
    async def ask(a: int) -> int:
        """Ask."""
        done.append('ask')
        return a

    replies = [
        code("try:\n    x = add(1, 2)\nexcept BaseException:\n    x = 'swallowed'\nprint(x)"),
        code("try:\n    y = await ask(x)\nexcept BaseException:\n    y = 'swallowed'"),
        code('final_answer([x, y])'),
    ]
    whole = Failing(MemoryStore(), 1000)
    async with agent(whole, *replies, tools=[add, ask], approve=yes) as first:
        assert (await first.run('go', run_id='run-1')).ended == 'answer'
    for left in range(1, 1000 - whole.left):
        store = MemoryStore()
        failing = Failing(store, left)
        async with agent(failing, *replies, tools=[add, ask], approve=yes) as first:
            with pytest.raises(StoreUnavailable, match='disk is full'):
                await first.run('go', run_id='run-1')
        made = sum(record.path.rpartition('/')[2].startswith('ask#') for record in await store.load('run-1'))
        async with agent(store, *replies[made:], tools=[add, ask], approve=yes) as again:
            assert (await again.resume('run-1')).output == [3, 3], left


async def test_a_store_that_is_lost_while_the_model_calls_is_an_error_too() -> None:
    @tool(side='model')
    def lookup(word: str) -> str:
        """Look up."""
        return word

    store = MemoryStore()
    reply = Reply(calls=(FunctionCall(id='1', name='lookup', arguments='{"word": "a"}'),))
    model = ScriptedModel([reply, 'done'], functions=True)
    async with Agent(model, tools=[lookup], journal=Failing(store, 2)) as first:
        with pytest.raises(StoreUnavailable):
            await first.run('go')
    assert len(model.requests) == 1


async def test_of_two_concurrent_resumes_one_wins_and_the_other_gets_an_error() -> None:
    store = MemoryStore()
    async with agent(store, code('x = 1')) as first:
        await first.run('go', run_id='run-1', max_steps=1)

    async def slowly(messages: object) -> str:
        await asyncio.sleep(0.05)
        return ANSWER

    one, other = Agent[Any](ScriptedModel(slowly), journal=store), Agent[Any](ScriptedModel(slowly), journal=store)
    async with one, other:
        for pair in ((one, other), (one, one)):
            copy = await copy_run(store, await store.info('run-1'))
            results = await asyncio.gather(*(each.resume(copy.run) for each in pair), return_exceptions=True)
            busy = [result for result in results if isinstance(result, RunBusy)]
            assert len(busy) == 1, results
            assert [result.output for result in results if not isinstance(result, BaseException)] == [42]
        copy = await copy_run(store, await store.info('run-1'))
        work = asyncio.ensure_future(one.resume(copy.run))
        await asyncio.sleep(0.02)
        with pytest.raises(RunBusy):
            await one.resume(copy.run)
        assert (await work).output == 42


async def test_a_run_id_that_is_taken_is_refused() -> None:
    store = MemoryStore()
    async with agent(store, ANSWER, ANSWER) as one:
        await one.run('go', run_id='run-1')
        with pytest.raises(RunBusy, match='resume it, or choose another id'):
            await one.run('go', run_id='run-1')


@dataclass
class Point:
    x: int


async def test_resuming_a_finished_run_returns_its_result() -> None:
    store = MemoryStore()
    async with Agent(ScriptedModel([code("final_answer({'x': 1})")]), output_type=Point, journal=store) as one:
        first = await one.run('go', run_id='run-1')
    before = await store.load('run-1')
    async with Agent(ScriptedModel([]), output_type=Point, journal=store) as other:
        for _ in range(2):
            again = await other.resume('run-1')
            assert again.output == Point(1)
            assert (again.steps, again.messages, again.usage) == (first.steps, first.messages, first.usage)
    assert await store.load('run-1') == before
    assert not (await store.lease('run-1')).until


async def test_runs_that_cannot_be_resumed_are_refused() -> None:
    store = MemoryStore()
    async with agent(store, ANSWER) as one:
        with pytest.raises(RunNotFound):
            await one.resume('run-0')
        await one.run('go', run_id='run-1', user='ann')
        with pytest.raises(RunNotFound):
            await one.resume('run-1', user='bob')
        with pytest.raises(RunNotFound):
            await one.resume('run-1', user='')
        assert (await one.resume('run-1', user='ann')).output == 42
        await (await Journal.create(store, RunInfo(run='run-2', kind='flow', name='m:f'))).close()
        with pytest.raises(AgentError, match='not the run of an agent'):
            await one.resume('run-2')
        assert not (await store.lease('run-2')).until
        with pytest.raises(AgentError, match='empty'):
            await one.run('  ')


async def test_an_open_run_of_another_user_is_not_found() -> None:
    async with agent(MemoryStore(), code('x = 1'), ANSWER) as one:
        run = await one.start('go', run_id='run-1', user='ann')
        await run.step()
        for user in ('bob', ''):
            with pytest.raises(RunNotFound):
                await one.resume('run-1', 'hello', user=user)
            with pytest.raises(RunNotFound):
                await one.answer('run-1', True, user=user)
        assert (await one.resume('run-1', user='ann')).output == 42


async def test_other_instructions_and_tools_do_not_count_as_a_change() -> None:
    store = MemoryStore()
    replies = [code(f"v{n} = {n}\nprint('word ' * 400)") for n in range(6)]
    model = ScriptedModel(replies, context_tokens=8000)
    async with Agent(model, journal=store) as one:
        await one.run('go', run_id='run-1', max_steps=6)

    @tool
    def something(new: int) -> int:
        """Something new."""
        return new

    model = ScriptedModel([code('final_answer(v0 + v5)')], context_tokens=8000)
    async with Agent(model, journal=store, instructions='Much more. ' * 500, tools=[something]) as other:
        assert (await other.resume('run-1')).output == 5


# Whose they are -------------------------------------------------------------------------------------------------------


async def test_a_session_continues_after_an_answer_of_another_type() -> None:
    store = MemoryStore()
    async with Agent(ScriptedModel([code("final_answer({'x': 1})")]), output_type=Point, journal=store) as one:
        await one.run('I am Ann.', session='s', user='ann')
    model = ScriptedModel([ANSWER, ANSWER, ANSWER])
    async with Agent(model, journal=store) as other:
        await other.run('Who am I?', session='s', user='ann')
        assert 'I am Ann.' in _sent(model, 0)
        await other.run('Who am I?', session='s', user='bob')
        assert 'I am Ann.' not in _sent(model, 1)
        await other.run('And now?', session='s', user='ann')
        assert _sent(model, 2).count('I am Ann.') == 1
        assert _sent(model, 2).count('Who am I?') == 1
        assert _sent(model, 2).count('And now?') == 1


async def test_a_failed_run_is_not_part_of_the_session() -> None:
    store = MemoryStore()
    model = ScriptedModel([ANSWER, ModelUnavailable('down'), ANSWER])
    async with Agent(model, journal=store) as one:
        await one.run('first', session='s')
        with pytest.raises(ModelUnavailable):
            await one.run('second', session='s')
        await one.run('third', session='s')
    assert 'first' in _sent(model, 2)
    assert 'second' not in _sent(model, 2)


async def test_explicit_history_replaces_that_of_the_session() -> None:
    store = MemoryStore()
    model = ScriptedModel([ANSWER, ANSWER])
    async with Agent(model, journal=store) as one:
        await one.run('first', session='s')
        await one.run('second', session='s', history=[Message(role='user', text='other')])
    assert 'first' not in _sent(model, 1)


def _sent(model: ScriptedModel, number: int) -> str:
    return '\n'.join(message.text for message in model.requests[number].messages)


async def test_without_a_journal_nothing_is_recorded_and_users_are_refused() -> None:
    async with agent('off', code('x = 1'), code('final_answer(x)'), ANSWER) as one:
        with pytest.raises(AgentError, match='needs a journal'):
            await one.run('go', user='ann')
        with pytest.raises(AgentError, match='needs a journal'):
            await one.run('go', session='s')
        stopped = await one.run('go', max_steps=1)
        assert (await one.resume(stopped.run_id)).output == 1
        with pytest.raises(AgentError, match='no unfinished run'):
            await one.resume(stopped.run_id)


async def test_by_default_runs_are_kept_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path / 'data'))
    async with Agent(ScriptedModel([ANSWER])) as one:
        result = await one.run('go')
    store = SqliteStore(tmp_path / 'data' / 'runs.db')
    assert (await store.info(result.run_id)).title == 'go'
    await store.close()


@pytest.mark.one_protocol
def test_an_agent_in_several_event_loops_has_a_store_in_each_and_closes_them(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        one = Agent(ScriptedModel([ANSWER] * 4), journal=str(tmp_path / 'runs.db'))
        runs = [one.run_sync('go').run_id, asyncio.run(one.run('go')).run_id, asyncio.run(one.run('go')).run_id]
        assert [asyncio.run(one.resume(run)).output for run in runs] == [42, 42, 42]
        one.close_sync()
        del one
        gc.collect()
    open_files = [os.readlink(f'/proc/self/fd/{file}') for file in os.listdir('/proc/self/fd') if _is_link(file)]
    assert not [file for file in open_files if str(tmp_path) in file]


def _is_link(file: str) -> bool:
    return os.path.islink(f'/proc/self/fd/{file}')


async def test_manual_steps_may_run_in_different_tasks() -> None:
    store = MemoryStore()
    async with agent(store, code('x = 1'), code('x += 1'), code('final_answer(x)')) as one:
        run = await asyncio.create_task(one.start('go'))
        await asyncio.create_task(run.step())
        await asyncio.create_task(run.step())
    paths = [record.path for record in await store.load(run.id)]
    assert not [path for path in paths if '~' in path]
    async with agent(store, code('final_answer(x)')) as other:
        assert (await other.resume(run.id)).output == 2


async def test_an_interrupted_manual_step_is_continued_by_resuming() -> None:
    store = MemoryStore()
    waiting = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        await waiting.wait()

    model = ScriptedModel([code('x = 1\nawait wait()'), code('final_answer(x)')])
    async with Agent(model, journal=store, tools=[wait]) as one:
        run = await one.start('go')
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run.step(), 0.2)
        with pytest.raises(AgentError, match=r'agent\.resume'):
            await run.step()
        waiting.set()
        assert (await one.resume(run.id)).output == 1
    assert len(model.requests) == 2


# What is counted and told ---------------------------------------------------------------------------------------------


async def test_limits_include_usage_before_a_crash() -> None:
    store = MemoryStore()
    replies = [code(f'x{n} = {n}') for n in range(10)]
    limits = RunLimits(steps=None, requests=4)
    async with agent(store, *replies, limits=limits) as one:
        assert (await one.run('go', run_id='run-1')).ended == 'max_requests'
    records = await store.load('run-1')
    for cut in range(1, len(records)):
        copy = await copy_run(store, await store.info('run-1'), upto=cut)
        asked = sum(record.kind == 'done' and '/ask#' in record.path for record in records[:cut])
        async with agent(store, *replies[asked:], limits=limits) as other:
            result = await other.resume(copy.run)
        assert (result.ended, result.usage.requests) == ('max_requests', 4)


async def test_hooks_get_only_events_after_the_replay() -> None:
    store = MemoryStore()
    async with agent(store, code('x = 1\nprint(x)'), code('y = 2'), ANSWER) as one:
        await one.run('go', run_id='run-1')
    records = await store.load('run-1')
    info = await store.info('run-1')
    cut = next(record.seq for record in records if record.path.endswith('cell#2') and record.kind == 'done')
    seen = Seen()
    copy = await copy_run(store, info, upto=cut)
    async with agent(store, ANSWER, hooks=[seen]) as other:
        await other.resume(copy.run)
    assert seen.kinds[:3] == ['run_resumed', 'step_started', 'model_requested']
    assert seen.kinds[-2:] == ['answer', 'run_finished']
    assert seen.kinds.count('step_started') == 1
    last = max(record.seq for record in records if '/cell#3' in record.path)
    seen = Seen()
    copy = await copy_run(store, info, upto=last)
    async with agent(store, hooks=[seen]) as other:
        await other.resume(copy.run)
    assert seen.kinds == ['run_resumed', 'answer', 'run_finished']
    seen = Seen()
    copy = await copy_run(store, info, upto=1)
    async with agent(store, ANSWER, hooks=[seen]) as other:
        await other.resume(copy.run)
    assert seen.kinds[0] == 'run_resumed'


# Runs inside others ---------------------------------------------------------------------------------------------------


def nested(store: MemoryStore, outer: Sequence[Scripted], inner: Sequence[Scripted], *, sync: bool) -> Any:
    """An agent that has another as a tool."""
    inside = ScriptedModel(inner, name='scripted:inner')
    helper = Agent[Any](inside, name='helper', journal=store)

    @tool
    async def ask_helper(question: str) -> int:
        """Ask."""
        return (await helper.run(question)).unwrap()

    @tool(name='ask_helper')
    def ask_helper_sync(question: str) -> int:
        """Ask."""
        return helper.run_sync(question).unwrap()

    outside = ScriptedModel(outer, name='scripted:outer')
    tools = [ask_helper_sync if sync else ask_helper]
    return Agent[Any](outside, tools=tools, journal=store), outside, inside


@pytest.mark.parametrize('sync', [False, True])
async def test_a_run_in_a_tool_is_recorded_below_and_not_repeated(sync: bool) -> None:
    ask = "ask_helper('{0}')" if sync else "await ask_helper('{0}')"
    outer = [code(f'a = {ask.format("one")}\nb = {ask.format("two")}'), code('final_answer(a + b)')]
    inner = [code('x = 1\nprint(x)'), code('final_answer(x)'), code('x = 10\nprint(x)'), code('final_answer(x)')]
    store = MemoryStore()
    one, *_ = nested(store, outer, inner, sync=sync)
    async with one:
        expected = await one.run('go', run_id='run-1')
    assert expected.output == 11
    assert expected.usage.requests == 6
    assert [info.run for info in await store.runs()] == ['run-1']
    records = await store.load('run-1')
    for cut in range(1, len(records)):
        ended = [r.path for r in records[:cut] if r.kind == 'done' and '/ask#' in r.path]
        asked = [sum('helper' in path for path in ended), sum('helper' not in path for path in ended)]
        copy = await copy_run(store, await store.info('run-1'), upto=cut)
        other, outside, inside = nested(store, outer[asked[1] :], inner[asked[0] :], sync=sync)
        async with other:
            result = await other.resume(copy.run)
        assert result.output == 11
        at = f'after {records[cut - 1].path} {records[cut - 1].kind}'
        assert [len(inside.requests), len(outside.requests)] == [4 - asked[0], 2 - asked[1]], at
        assert result.usage.requests == 6, at
        assert {name: usage.requests for name, usage in result.usage_by_model.items()} == {
            'scripted:outer': 2,
            'scripted:inner': 4,
        }


async def test_planner_and_implementer_inside_a_step_are_recorded_below_it() -> None:
    store = MemoryStore()

    async def flow(run: str, plan: Sequence[str], work: Sequence[str], *, new: bool) -> object:
        info = RunInfo(run=run, kind='flow', name='m:f')
        journal = await (Journal.create(store, info) if new else Journal.open(store, run))
        try:
            scope = Scope(journal, '')
            with scope.entered():

                async def both() -> object:
                    planner = Agent[Any](ScriptedModel(plan), python=False, name='planner', journal=store)
                    implementer = Agent[Any](ScriptedModel(work), name='implementer', journal=store)
                    async with planner, implementer:
                        return (await plan_and_implement(planner, implementer, 'count')).output

                return await scope.step('team', both)
        finally:
            await journal.close()

    plan, work = ['1. Count.'], [code('n = 3\nprint(n)'), code('final_answer(n)')]
    assert await flow('run-1', plan, work, new=True) == 3
    records = await store.load('run-1')
    for cut in range(1, len(records) + 1):
        copy = await copy_run(store, await store.info('run-1'), upto=cut)
        ended = [r.path for r in records[:cut] if r.kind == 'done' and '/ask#' in r.path]
        planned = sum('planner' in path for path in ended)
        assert await flow(copy.run, plan[planned:], work[len(ended) - planned :], new=False) == 3


async def test_another_task_of_a_nested_run_is_a_change() -> None:
    store = MemoryStore()

    async def flow(task: str, *replies: str) -> object:
        if not await store.create(RunInfo(run='run-1', kind='flow')):
            journal = await Journal.open(store, 'run-1')
        else:
            journal = await Journal.open(store, 'run-1')
        try:
            with Scope(journal, '').entered():
                async with agent(store, *replies) as one:
                    return (await one.run(task)).output
        finally:
            await journal.close()

    assert await flow('one', ANSWER) == 42
    assert await flow('one') == 42
    with pytest.raises(RunChanged):
        await flow('two', ANSWER)


async def test_an_approval_in_a_nested_run_pauses_the_outer_run() -> None:
    store = MemoryStore()
    done: list[str] = []

    @tool(needs_approval=True)
    def remove(name: str) -> str:
        """Remove."""
        done.append(name)
        return f'removed {name}'

    def both(outer: Sequence[str], inner: Sequence[str], *, sync: bool) -> Agent[Any]:
        helper = Agent[Any](ScriptedModel(inner), name='helper', tools=[remove], journal=store)

        @tool(idempotent=False)
        def ask() -> str:
            """Ask."""
            done.append('ask')
            if sync:
                return helper.run_sync('clean').unwrap()
            return ''

        @tool(name='ask', idempotent=False)
        async def ask_async() -> str:
            """Ask."""
            done.append('ask')
            return (await helper.run('clean')).unwrap()

        return Agent[Any](ScriptedModel(outer), tools=[ask if sync else ask_async], journal=store)

    for sync in (False, True):
        done.clear()
        run = f'run-{sync}'
        call = 'ask()' if sync else 'await ask()'
        async with both([code(f'final_answer({call})')], [code("final_answer(remove('x'))")], sync=sync) as one:
            result = await one.run('go', run_id=run)
        assert (result.ended, result.waiting[0].tool, done) == ('approval', 'remove', ['ask'])
        async with both([], [], sync=sync) as other:
            await other.answer(run, True)
            result = await other.resume(run)
            if result.ended == 'approval':  # the tool around it had begun, and must not be begun twice
                await other.answer(run, {'again': True})
                result = await other.resume(run)
        assert result.output == 'removed x'
        assert done.count('x') == 1


# Processes that are killed --------------------------------------------------------------------------------------------

PROGRAM = """
import asyncio, os, signal, sys
from habilis.agent import Agent
from habilis.journal.stores.sqlite import SqliteStore
from habilis.models import ScriptedModel
from habilis.sandbox import Sandbox
from habilis.tools import ApprovalRequest, tool

FILE, DIE = sys.argv[1], sys.argv[2]

@tool
def look(name: str) -> str:
    print('look', name, flush=True)
    if name == DIE:
        os.kill(os.getpid(), signal.SIGKILL)
    return 'seen ' + name

FIRST = '''```python
import functools
class Box:
    def __init__(self, n): self.n = n
    def more(self): return Box(self.n + 1)
def twice(f): return lambda x: f(f(x))
inc = twice(lambda x: x + 1)
box = Box(1).more()
rest = functools.partial(max, 3)
print(run_in('side', 'side = [1]; def_ = lambda: side * 2'))
```'''
SECOND = '''```python
a = look('a')
print(run_in('side', 'side.append(2); side'))
b = look('b')
```'''
THIRD = '''```python
final_answer([inc(1), box.more().n, rest(1), a, b, run_in('side', 'side, def_()')])
```'''
REPLIES = [FIRST, SECOND, THIRD]

def reply(messages):
    print('model', flush=True)
    n = sum(message.role == 'assistant' for message in messages)
    if DIE == f'model {n}':
        os.kill(os.getpid(), signal.SIGKILL)
    return REPLIES[n]

async def main():
    rooms = {'main': await Sandbox.create('wasm'), 'side': await Sandbox.create('wasm')}
    agent = Agent(ScriptedModel(reply), tools=[look], journal=SqliteStore(FILE), sandbox=rooms)
    if 'run-1' in [info.run for info in await SqliteStore(FILE).runs()]:
        print((await agent.resume('run-1')).output)
    else:
        print((await agent.run('go', run_id='run-1')).output)

asyncio.run(main())
"""


def process(file: Path, die: str) -> tuple[int, list[str]]:
    source = textwrap.dedent(PROGRAM)
    done = subprocess.run([sys.executable, '-c', source, str(file), die], capture_output=True, text=True, check=False)
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.one_protocol
def test_variables_are_restored_after_kills_inside_and_between_cells(tmp_path: Path) -> None:
    file = tmp_path / 'runs.db'
    assert process(file, 'model 1') == (-signal.SIGKILL, ['model', 'model'])
    assert process(file, 'b') == (-signal.SIGKILL, ['model', 'look a', 'look b'])
    assert process(file, 'model 2') == (-signal.SIGKILL, ['look b', 'model'])
    status, lines = process(file, '')
    assert status == 0
    assert lines == ['model', "[3, 3, 3, 'seen a', 'seen b', '([1, 2], [1, 2, 1, 2])']"]


@pytest.mark.one_protocol
def test_a_session_continues_in_the_next_process(tmp_path: Path) -> None:
    file = tmp_path / 'runs.db'
    program = """
    import os, signal, sys
    from habilis.agent import Agent
    from habilis.models import ScriptedModel
    model = ScriptedModel(['Hello Ann.'])
    result = Agent(model, journal=sys.argv[1]).run_sync(sys.argv[2], session='s', user='u')
    print(sorted(m.text for m in model.requests[0].messages if 'Ann' in m.text and m.role != 'system'), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    for task, expected in (('I am Ann.', 1), ('Who am I?', 2)):
        source = textwrap.dedent(program)
        done = subprocess.run(
            [sys.executable, '-c', source, str(file), task], capture_output=True, text=True, check=False
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert done.stdout.count('Ann.') == expected, done.stdout


async def test_variables_of_a_sandbox_of_the_user_are_restored() -> None:
    store = MemoryStore()
    async with await Sandbox.create('wasm') as sandbox:
        async with agent(store, code('x = [1]\ndef f(): return x'), sandbox=sandbox) as one:
            await one.run('go', run_id='run-1', max_steps=1)
        await sandbox.run('x = None\nother = 1')
        async with agent(store, code("final_answer((f(), 'other' in globals()))"), sandbox=sandbox) as two:
            assert (await two.resume('run-1')).output == ([1], False)
    async with await Sandbox.create('wasm') as sandbox:
        copy = await copy_run(store, await store.info('run-1'), upto=3)
        async with agent(store, code('final_answer(f())'), sandbox=sandbox) as three:
            assert (await three.resume(copy.run, max_steps=5)).output == [1]


async def test_variables_that_cannot_be_saved_do_not_end_the_run() -> None:
    store = MemoryStore()
    hostile = 'class Bad:\n    def __reduce__(self):\n        raise SystemExit\nbad = Bad()\ngood, g = 1, iter([1])'
    async with agent(store, code(hostile), code('final_answer(good)')) as one:
        assert (await one.run('go')).output == 1
