"""In a run: who watches sees all of it, and may change what goes out but not the history."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest

from habilis.agent.events import AgentEvent, HookFailed, ModelRequested, RunFailed, RunFinished
from habilis.agent.hooks.dispatch import Dispatcher
from habilis.core.errors import ModelError
from habilis.models.contract import Message
from habilis.models.scripted import ScriptedModel
from tests.agent.hooks.watching import ANSWER, Seen, agent, code, watch

# In a run -------------------------------------------------------------------------------------------------------------


async def test_hooks_of_the_agent_and_of_the_run_see_the_whole_run() -> None:
    order: list[str] = []
    of_agent, of_run = Seen(), Seen()

    async def slow(event: AgentEvent) -> None:
        await asyncio.sleep(0.001)
        order.append(f'agent {event.kind}')

    def note(event: AgentEvent) -> None:
        order.append(f'run {event.kind}')

    result = await watch([ANSWER], of_run, note, hooks=[slow, of_agent])
    assert of_agent.events == of_run.events
    assert of_run.kinds[0] == 'run_started'
    assert of_run.kinds[-1] == 'run_finished'
    assert [event.result for event in of_run.of(RunFinished)] == [result]
    assert order[:2] == ['agent run_started', 'run run_started']
    assert order[-2:] == ['agent run_finished', 'run run_finished']
    expected = ['step_started', 'model_requested', 'model_replied', 'code', 'cell_finished', 'step_finished', 'answer']
    assert [kind for kind in of_run.kinds if kind in expected] == expected


async def test_a_hook_of_one_run_does_not_see_another() -> None:
    first, second = Seen(), Seen()
    async with agent(lambda _messages: ANSWER) as working:
        await asyncio.gather(working.run('x', hooks=[first]), working.run('x', hooks=[second]))
    [one], [two] = {event.run for event in first.events}, {event.run for event in second.events}
    assert one != two


async def test_a_run_continues_when_all_its_hooks_are_broken() -> None:
    def broken(event: AgentEvent) -> None:
        raise ValueError(event.kind)

    async def broken_later(event: AgentEvent) -> None:
        await asyncio.sleep(0)
        raise RuntimeError(event.kind)

    result = await watch([ANSWER], broken, broken_later)
    assert result.output == 42


async def test_output_of_the_sandbox_and_its_tool_calls_come_in_the_order_in_which_they_happened() -> None:
    seen = Seen()

    def shout(text: str) -> str:
        """Make it loud."""
        return text.upper()

    await watch([code("print('one')\nloud = shout('two')\nprint('three')\nfinal_answer(loud)")], seen, tools=[shout])
    wanted = ('code', 'output', 'tool_called', 'tool_returned', 'cell_finished')
    told = [event for event in seen.events if event.kind in wanted]
    assert [event.kind for event in told] == [
        'code', 'output', 'tool_called', 'tool_returned', 'output', 'cell_finished'
    ]  # fmt: skip
    assert [event.text for event in told if event.kind == 'output'] == ['one\n', 'three\n']


async def test_a_run_that_fails_says_so_before_its_error_is_raised() -> None:
    seen = Seen()

    async def slow(event: AgentEvent) -> None:
        await asyncio.sleep(0.001)
        seen(event)

    error = ModelError('no such thing')
    async with agent([error]) as working:
        with pytest.raises(ModelError):
            await working.run('x', hooks=[slow])
        assert seen.kinds[-1] == 'run_failed'
    assert [event.error for event in seen.of(RunFailed)] == [error]
    assert seen.texts[-1] == 'ModelError: no such thing'
    assert 'run_finished' not in seen.kinds


async def test_a_cancelled_run_says_so_and_is_not_held_up_by_a_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dispatcher.close, '__defaults__', (0.05,))
    seen = Seen()
    asked = asyncio.Event()

    async def hangs(event: AgentEvent) -> None:
        if event.kind == 'run_failed':
            await asyncio.Event().wait()

    def notes(event: AgentEvent) -> None:
        seen(event)
        if event.kind == 'model_requested':
            asked.set()

    async with agent(ScriptedModel([ANSWER], latency=60), hooks=[notes, hangs]) as working:
        work = asyncio.ensure_future(working.run('x'))
        await asked.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    assert seen.kinds[-1] == 'run_failed'
    [failed] = seen.of(RunFailed)
    assert isinstance(failed.error, asyncio.CancelledError)


def test_a_run_that_is_resumed_in_another_event_loop_is_watched_there() -> None:
    seen = Seen()
    working = agent([code('print(1)'), ANSWER], hooks=[seen])
    first = asyncio.run(working.run('x', max_steps=1))
    before = len(seen.events)
    assert asyncio.run(working.resume(first.run_id)).output == 42
    assert seen.kinds[before : before + 2] == ['run_resumed', 'step_started']
    assert seen.kinds[-1] == 'run_finished'


async def test_a_run_that_was_started_without_await_is_watched_when_it_is_resumed_with_it() -> None:
    seen = Seen()
    async with agent([code('print(1)'), ANSWER], hooks=[seen]) as working:
        first = working.run_sync('x', max_steps=1)
        assert (await working.resume(first.run_id)).output == 42
    assert seen.kinds.count('run_finished') == 2
    assert seen.kinds[-1] == 'run_finished'


# What goes out --------------------------------------------------------------------------------------------------------


class Outgoing:
    """Changes what is sent."""

    def __init__(self, change: Callable[[Sequence[Message]], object]) -> None:
        self._change = change

    def __call__(self, event: AgentEvent) -> None:
        pass

    def outgoing(self, messages: Sequence[Message]) -> Sequence[Message]:
        return cast('Sequence[Message]', self._change(messages))


def hide_the_name(messages: Sequence[Message]) -> list[Message]:
    """As a company may want it."""
    return [replace(message, text=message.text.replace('Ann', 'A.')) for message in messages]


async def test_a_hook_changes_what_the_model_gets_and_the_history_stays() -> None:
    model = ScriptedModel([code('print(1)'), ANSWER])
    result = await watch(model, Outgoing(hide_the_name), task='Write to Ann.')
    for asked in model.requests:
        assert not any('Ann' in message.text for message in asked.messages)
        assert any('Write to A.' in message.text for message in asked.messages)
    assert 'Write to Ann.' in result.messages[0].text


async def test_hooks_change_what_goes_out_one_after_the_other_and_watchers_see_what_was_sent() -> None:
    seen = Seen()
    model = ScriptedModel([ANSWER])

    def shout(messages: Sequence[Message]) -> list[Message]:
        return [replace(message, text=message.text.upper()) for message in messages]

    await watch(model, Outgoing(shout), seen, task='To Ann', hooks=[Outgoing(hide_the_name)])
    assert 'TO A.' in model.requests[0].messages[-1].text
    [requested] = seen.of(ModelRequested)
    assert requested.messages == model.requests[0].messages


def crash(_messages: Sequence[Message]) -> list[Message]:
    """Fails."""
    raise KeyError


async def late(messages: Sequence[Message]) -> Sequence[Message]:
    """Is async, which `outgoing` may not be."""
    return messages


BROKEN: list[Callable[[Sequence[Message]], object]] = [
    crash,
    late,
    lambda _: None,
    lambda _: (),
    lambda _: ['text'],
    lambda _: 5,
    lambda messages: [*messages, None],
]


@pytest.mark.parametrize('change', BROKEN)
async def test_what_a_broken_hook_wants_to_send_is_not_sent(change: Callable[[Sequence[Message]], object]) -> None:
    seen = Seen()
    model = ScriptedModel([ANSWER])
    result = await watch(model, Outgoing(change), seen, task='Task')
    assert result.output == 42
    assert 'Task' in model.requests[0].messages[-1].text
    [failed] = seen.of(HookFailed)
    assert failed.text.startswith('Outgoing: ')
