"""No tool begins after its run was cancelled, has reached a limit, or has its answer, whatever it was waiting for."""

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from habilis.agent import Agent, RunLimits
from habilis.core.limits import Limits
from habilis.journal import MemoryStore
from habilis.models import Reply, ScriptedModel
from habilis.sandbox.options import SandboxSettings
from habilis.tools import ApprovalRequest, Ask, GateCall, Toolbox, tool
from tests.agent.loop.test_tool_calls import block, calling
from tests.waiting import until

AFTERWARDS = 0.2
"""Seconds in which a tool that wrongly begins has begun."""


class Obstacle:
    """Something that holds a call back until it is released, cancelled or not, as a shielded request does."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()

    async def wait(self) -> None:
        self.reached.set()
        while not self.released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    async def release_after(self, seconds: float) -> None:
        await until(self.reached.is_set)
        await asyncio.sleep(seconds)
        self.released.set()

    async def gate(self, call: GateCall) -> None:
        await self.wait()

    async def ask(self, call: GateCall) -> Ask:
        await self.wait()
        return Ask('?')

    async def approve(self, request: ApprovalRequest) -> bool:
        await self.wait()
        return True

    def approve_on_thread(self, request: ApprovalRequest) -> bool:
        self.reached.set()
        return self.released.wait(60)

    def preview(self, amount: int) -> str:
        self.reached.set()
        self.released.wait(60)
        return 'diff'


def payments(paid: list[int], **options: Any) -> list[Any]:
    """The tools `pay`, a plain function, and `pay_async`."""

    @tool(side='both', idempotent=False, **options)
    def pay(amount: int) -> None:
        paid.append(amount)

    @tool(side='both', idempotent=False, **options)
    async def pay_async(amount: int) -> None:
        paid.append(amount)

    return [pay, pay_async]


def obstacles(kind: str, obstacle: Obstacle) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the tools and of the agent."""
    asks: dict[str, Any] = {'needs_approval': True}
    options: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        'gate': ({}, {'gates': [obstacle.gate]}),
        'asking gate': ({}, {'gates': [obstacle.ask], 'approve': yes}),
        'approver': (asks, {'approve': obstacle.approve}),
        'approver on a thread': (asks, {'approve': obstacle.approve_on_thread}),
        'preview': ({**asks, 'preview': obstacle.preview}, {'approve': yes}),
    }
    return options[kind]


def yes(request: ApprovalRequest) -> bool:
    return True


KINDS = ['gate', 'asking gate', 'approver', 'approver on a thread', 'preview']
CALLS = [block('pay(1)'), block('await pay_async(1)'), calling(('pay', {'amount': 1}), ('pay_async', {'amount': 2}))]


@pytest.mark.parametrize('journal', ['off', 'memory'])
@pytest.mark.parametrize('reply', CALLS, ids=['code', 'async code', 'model'])
@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.one_protocol
async def test_no_tool_begins_after_cancel(kind: str, reply: str | Reply, journal: str) -> None:
    paid: list[int] = []
    obstacle = Obstacle()
    of_tools, of_agent = obstacles(kind, obstacle)
    model = ScriptedModel([reply], functions=isinstance(reply, Reply))
    where: Any = MemoryStore() if journal == 'memory' else journal
    agent = Agent(model, tools=payments(paid, **of_tools), journal=where, **of_agent)
    running = asyncio.ensure_future(agent.run('go'))
    await until(obstacle.reached.is_set)
    running.cancel()
    asyncio.get_running_loop().call_later(0.1, obstacle.released.set)
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(AFTERWARDS)
    assert paid == []


@pytest.mark.one_protocol
@pytest.mark.parametrize('code', ['pay(1)', 'await pay_async(1)'])
@pytest.mark.parametrize('kind', ['gate', 'asking gate', 'preview'])
async def test_no_tool_begins_after_the_time_limit_of_the_run(kind: str, code: str) -> None:
    paid: list[int] = []
    obstacle = Obstacle()
    of_tools, of_agent = obstacles(kind, obstacle)
    tools = payments(paid, **of_tools)
    for seconds in (0.5, 2, 8, 32):  # on a busy machine the limit may be over before the call is made
        limits = RunLimits(seconds=seconds)
        agent = Agent(ScriptedModel([block(code)]), tools=tools, limits=limits, journal='off', **of_agent)
        releasing = asyncio.ensure_future(obstacle.release_after(seconds + 0.2))
        result = await agent.run('go')
        assert result.ended == 'max_seconds'
        if obstacle.reached.is_set():
            break
        releasing.cancel()
    await releasing
    await asyncio.sleep(AFTERWARDS)
    assert paid == []


@pytest.mark.one_protocol
@pytest.mark.parametrize('kind', ['approver', 'approver on a thread'])
async def test_the_time_of_a_person_does_not_count(kind: str) -> None:
    paid: list[int] = []
    obstacle = Obstacle()
    of_tools, of_agent = obstacles(kind, obstacle)
    replies = [block('pay(1)'), block('import time\ntime.sleep(30)')]
    seconds = 3.0
    limits = RunLimits(seconds=seconds)
    agent = Agent(ScriptedModel(replies), tools=payments(paid, **of_tools), limits=limits, journal='off', **of_agent)
    releasing = asyncio.ensure_future(obstacle.release_after(3.5))
    result = await agent.run('go')
    await releasing
    assert (result.ended, paid, len(result.steps)) == ('max_seconds', [1], 2)
    asked = result.steps[0]
    assert asked.cell is not None
    assert max(asked.seconds, asked.cell.seconds) < seconds


@pytest.mark.one_protocol
@pytest.mark.parametrize('code', ['pay(1)', 'await pay_async(1)'])
@pytest.mark.parametrize('kind', ['gate', 'asking gate'])  # the time of a person does not count
async def test_no_tool_begins_after_the_time_limit_of_its_cell(kind: str, code: str) -> None:
    paid: list[int] = []
    obstacle = Obstacle()
    of_tools, of_agent = obstacles(kind, obstacle)
    model = ScriptedModel([block(code), block('final_answer(1)')])
    settings = SandboxSettings(limits=Limits(seconds=1.5))
    made = Agent(model, tools=payments(paid, **of_tools), sandbox_settings=settings, **of_agent)
    releasing = asyncio.ensure_future(obstacle.release_after(1.7))
    result = await made.run('go')
    await releasing
    await asyncio.sleep(AFTERWARDS)
    assert result.output == 1
    assert paid == []


@pytest.mark.parametrize('first', ['pay(1)', 'await pay_async(1)', 'task = asyncio.create_task(pay_async(1))'])
async def test_no_tool_begins_after_the_answer(first: str) -> None:
    paid: list[int] = []
    code = f'import asyncio\nfinal_answer(3)\ntry:\n    {first}\nexcept BaseException as error:\n    print(error)'
    async with Agent(ScriptedModel([block(code)]), tools=payments(paid)) as agent:
        result = await agent.run('go')
    assert result.output == 3
    assert paid == []


async def test_a_call_that_waits_for_a_gate_when_the_answer_is_given_does_not_begin() -> None:
    paid: list[int] = []
    obstacle = Obstacle()

    async def gate(call: GateCall) -> None:
        if call.tool == 'pay_async':
            await obstacle.wait()

    code = """
import asyncio
task = asyncio.create_task(pay_async(1))
await asyncio.sleep(0.1)
asyncio.get_event_loop().call_later(0.1, lambda: final_answer(3))
await asyncio.sleep(0.2)
"""

    async with Agent(ScriptedModel([block(code)]), tools=payments(paid), gates=[gate]) as agent:
        result = await agent.run('go')
        assert obstacle.reached.is_set()
        obstacle.released.set()
        await asyncio.sleep(AFTERWARDS)
    assert result.output == 3
    assert paid == []


async def test_an_answer_of_the_wrong_type_stops_no_calls() -> None:
    paid: list[int] = []
    code = "try:\n    final_answer('many')\nexcept Exception:\n    pay(1)\nfinal_answer(1)"
    async with Agent(ScriptedModel([block(code)]), tools=payments(paid), output_type=int) as agent:
        result = await agent.run('go')
    assert (result.output, paid) == (1, [1])


async def test_an_attempt_does_not_begin_after_cancel_and_neither_does_a_question_in_line() -> None:
    paid: list[int] = []
    asked: list[str] = []
    obstacle = Obstacle()

    @tool(retries=5)
    def flaky() -> None:
        paid.append(len(paid))
        obstacle.reached.set()
        msg = 'not now'
        raise ValueError(msg)

    @tool(needs_approval=True)
    async def send(text: str) -> None:
        paid.append(0)

    async def approve(request: ApprovalRequest) -> bool:
        asked.append(str(request.arguments['text']))
        await obstacle.wait()
        return True

    for code in ('flaky()', "import asyncio\nawait asyncio.gather(send('a'), send('b'))"):
        paid.clear()
        obstacle.reached.clear()
        obstacle.released.clear()
        agent = Agent(ScriptedModel([block(code)]), tools=[flaky, send], approve=approve)
        running = asyncio.ensure_future(agent.run('go'))
        await until(obstacle.reached.is_set)
        before = list(paid)
        running.cancel()
        asyncio.get_running_loop().call_later(0.1, obstacle.released.set)
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.sleep(AFTERWARDS)
        assert paid == before
    assert asked == ['a']


async def test_no_tool_of_a_sub_agent_begins_after_its_parent_was_cancelled() -> None:
    paid: list[int] = []
    obstacle = Obstacle()
    inner = Agent(ScriptedModel([block('pay(1)')]), tools=payments(paid), gates=[obstacle.gate], name='inner')

    @tool
    async def delegate(task: str) -> object:
        return (await inner.run(task)).output

    @tool
    def delegate_and_block(task: str) -> object:
        return inner.run_sync(task).output

    for code in ("await delegate('go')", "delegate_and_block('go')"):
        inner = Agent(ScriptedModel([block('pay(1)')]), tools=payments(paid), gates=[obstacle.gate], name='inner')
        outer = Agent(ScriptedModel([block(code)]), tools=[delegate, delegate_and_block], journal='off')
        obstacle.reached.clear()
        obstacle.released.clear()
        running = asyncio.ensure_future(outer.run('go'))
        await until(obstacle.reached.is_set)
        running.cancel()
        asyncio.get_running_loop().call_later(0.1, obstacle.released.set)
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.sleep(AFTERWARDS)
        assert paid == []


async def test_what_a_tool_has_started_in_the_background_outlives_its_run() -> None:
    done: list[int] = []
    inner = Agent(ScriptedModel([block('import time\ntime.sleep(0.5)\npay(1)\nfinal_answer(1)')]), tools=payments(done))
    left: list[asyncio.Future[Any]] = []

    @tool
    async def begin(task: str) -> None:
        left.append(asyncio.ensure_future(inner.run(task)))

    async with Agent(
        ScriptedModel([block("await begin('go')\nfinal_answer(2)")]), tools=[begin], journal='off'
    ) as outer:
        assert (await outer.run('go')).output == 2
    await left[0]
    assert done == [1]


async def test_a_plain_function_whose_caller_is_cancelled_before_its_thread_starts_does_not_begin() -> None:
    """The cancellation reaches the task only when it next waits, which is after the function was handed over."""
    paid: list[int] = []
    box = Toolbox(payments(paid), gates=[cancel_caller])
    for name in ('pay', 'pay_async'):
        with pytest.raises(asyncio.CancelledError):
            await asyncio.ensure_future(box.call(name, 1))
    await asyncio.sleep(AFTERWARDS)
    assert paid == []


def cancel_caller(call: GateCall) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
