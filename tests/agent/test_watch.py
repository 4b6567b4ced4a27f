"""Events reach everyone who watches, in order, whatever one of them does; and what goes out may be changed."""

import asyncio
import contextvars
import functools
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.watch import Hook, Watchers
from habilis.core.errors import ModelError
from habilis.core.events import Event
from habilis.models.contract import Message
from habilis.models.scripted import ScriptedModel
from tests.agent.watching import ANSWER, Seen, agent, code, watch


def watchers(*hooks: Hook) -> Watchers:
    """Of a run."""
    return Watchers(hooks, run='run-1', agent='tester')


def notice(text: object) -> Event:
    """Something that happened."""
    return Event(kind='notice', text=str(text))


# Delivery -------------------------------------------------------------------------------------------------------------


async def test_a_plain_function_and_a_coroutine_function_see_every_event() -> None:
    plain, awaited = Seen(), Seen()

    async def slowly(event: Event) -> None:
        await asyncio.sleep(0)
        awaited(event)

    watching = watchers(plain, slowly)
    for number in range(3):
        watching.emit(notice(number))
    await watching.drain()
    assert plain.texts == awaited.texts == ['0', '1', '2']


async def test_an_event_says_which_run_agent_and_step_it_is_of() -> None:
    seen = Seen()
    watching = watchers(seen)
    watching.step = 7
    watching.emit(notice('a'))
    watching.emit(Event(kind='notice', agent='other', step=2))
    await watching.drain()
    assert [(event.run, event.agent, event.step) for event in seen.events] == [
        ('run-1', 'tester', 7),
        ('run-1', 'other', 2),
    ]


async def test_emitting_never_waits_for_a_hook() -> None:
    seen = Seen()
    watching = watchers(seen)
    watching.emit(notice('a'))
    assert seen.events == []
    await watching.drain()
    assert seen.texts == ['a']


async def test_the_order_is_kept_when_an_early_event_takes_longer_than_a_late_one() -> None:
    seen = Seen()

    async def first_is_slow(event: Event) -> None:
        await asyncio.sleep(0.02 if event.text == '0' else 0)
        seen(event)

    watching = watchers(first_is_slow)
    for number in range(20):
        watching.emit(notice(number))
        await asyncio.sleep(0)
    await watching.drain()
    assert seen.texts == [str(number) for number in range(20)]


async def test_events_of_another_thread_keep_their_place_among_those_of_the_loop() -> None:
    seen = Seen()
    watching = watchers(seen)
    for number in range(0, 20, 2):
        thread = threading.Thread(target=watching.emit, args=(notice(number),))
        thread.start()
        thread.join()
        watching.emit(notice(number + 1))
    await watching.drain()
    assert seen.texts == [str(number) for number in range(20)]


async def test_events_of_many_threads_all_arrive_each_thread_in_its_order() -> None:
    seen = Seen()
    watching = watchers(seen)

    def emit_many(name: str) -> None:
        for number in range(200):
            watching.emit(notice(f'{name}{number}'))

    await asyncio.gather(*(asyncio.to_thread(emit_many, name) for name in 'abcd'))
    await watching.drain()
    assert len(seen.events) == 800
    for name in 'abcd':
        assert [text for text in seen.texts if text.startswith(name)] == [f'{name}{number}' for number in range(200)]


async def test_hooks_run_on_the_loop_of_the_run_also_for_events_of_threads() -> None:
    threads: set[int] = set()
    watching = watchers(lambda _event: threads.add(threading.get_ident()))
    await asyncio.to_thread(watching.emit, notice('a'))
    await watching.drain()
    assert threads == {threading.get_ident()}


async def test_hooks_run_in_the_context_in_which_the_run_was_started() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar('user')
    user.set('ann')
    found: list[str] = []
    watching = watchers(lambda _event: found.append(user.get()))
    user.set('bob')
    watching.emit(notice('a'))
    await asyncio.to_thread(watching.emit, notice('b'))
    await watching.drain()
    assert found == ['ann', 'ann']


def test_an_event_after_the_end_of_the_loop_is_dropped() -> None:
    seen = Seen()

    async def start() -> Watchers:
        return watchers(seen)

    asyncio.run(start()).emit(notice('late'))
    assert seen.events == []


@given(plan=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30))
def test_whatever_hooks_and_threads_do_each_event_comes_once_and_in_order(plan: list[tuple[bool, bool]]) -> None:
    seen = Seen()

    async def go() -> None:
        async def moody(event: Event) -> None:
            if event.kind == 'notice':
                fails, waits = plan[int(event.text)]
                if waits:
                    await asyncio.sleep(0)
                if fails:
                    raise ValueError

        watching = watchers(moody, seen)
        for number, (_, elsewhere) in enumerate(plan):
            if elsewhere:
                await asyncio.to_thread(watching.emit, notice(number))
            else:
                watching.emit(notice(number))
        await watching.drain()

    asyncio.run(go())
    notices = [event.text for event in seen.events if event.kind == 'notice']
    assert notices == [str(number) for number in range(len(plan))]
    assert seen.kinds.count('hook_failed') == sum(fails for fails, _ in plan)


# Hooks that fail ------------------------------------------------------------------------------------------------------


async def test_a_failing_hook_is_reported_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    error = ValueError('no disk')

    def broken(event: Event) -> None:
        if event.kind == 'notice':
            raise error

    watching = watchers(broken, seen)
    with caplog.at_level(logging.WARNING, 'habilis.agent'):
        watching.emit(notice('a'))
        watching.emit(notice('b'))
        await watching.drain()
    assert seen.kinds == ['notice', 'notice', 'hook_failed', 'hook_failed']
    assert seen.events[2].data is error
    assert seen.texts[2].endswith('broken: ValueError: no disk')
    assert [record.levelname for record in caplog.records] == ['WARNING', 'WARNING']
    assert 'no disk' in caplog.text


async def test_a_hook_that_fails_at_the_very_last_event_is_reported_too() -> None:
    seen = Seen()

    async def broken(event: Event) -> None:
        await asyncio.sleep(0)
        if event.kind == 'run_finished':
            raise ValueError

    watching = watchers(broken, seen)
    watching.emit(Event(kind='run_finished'))
    await watching.drain()
    assert seen.kinds == ['run_finished', 'hook_failed']


async def test_a_hook_that_always_fails_is_not_told_of_itself_for_ever() -> None:
    seen = Seen()
    calls: list[str] = []

    def hopeless(event: Event) -> None:
        calls.append(event.kind)
        raise ValueError

    watching = watchers(hopeless, seen)
    watching.emit(notice('a'))
    await watching.drain()
    assert calls == seen.kinds == ['notice', 'hook_failed']


async def test_an_error_that_cannot_even_be_printed_is_reported() -> None:
    class Nasty(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def broken(event: Event) -> None:
        if event.kind == 'notice':
            raise Nasty

    seen = Seen()
    watching = watchers(functools.partial(broken), seen)
    watching.emit(notice('a'))
    watching.emit(notice('b'))
    await watching.drain()
    assert seen.texts == ['a', 'b', 'partial: Nasty', 'partial: Nasty']


async def test_something_that_was_cancelled_inside_a_hook_does_not_stop_the_delivery() -> None:
    seen = Seen()

    async def gives_up(event: Event) -> None:
        if event.text == 'a':
            work = asyncio.ensure_future(asyncio.sleep(60))
            work.cancel()
            await work

    watching = watchers(gives_up, seen)
    watching.emit(notice('a'))
    watching.emit(notice('b'))
    await watching.drain()
    assert seen.kinds == ['notice', 'notice', 'hook_failed']


# Draining and closing -------------------------------------------------------------------------------------------------


async def test_draining_with_nothing_to_tell_returns_at_once() -> None:
    await watchers().drain()
    await watchers(Seen()).drain()


async def test_several_may_wait_for_the_same_events_and_more_may_follow() -> None:
    seen = Seen()

    async def slow(event: Event) -> None:
        await asyncio.sleep(0.01)
        seen(event)

    watching = watchers(slow)
    watching.emit(notice('a'))
    await asyncio.gather(watching.drain(), watching.drain(), watching.drain())
    assert seen.texts == ['a']
    watching.emit(notice('b'))
    await watching.drain()
    assert seen.texts == ['a', 'b']


async def test_waiting_can_be_cancelled_without_losing_events() -> None:
    seen = Seen()
    go_on = asyncio.Event()

    async def waits(event: Event) -> None:
        await go_on.wait()
        seen(event)

    watching = watchers(waits)
    watching.emit(notice('a'))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(watching.drain(), 0.01)
    go_on.set()
    await watching.drain()
    assert seen.texts == ['a']


async def test_a_hook_that_waits_for_its_own_run_does_not_wait_for_itself() -> None:
    seen = Seen()

    async def impatient(event: Event) -> None:
        await asyncio.wait_for(watching.drain(), 10)  # in Python 3.11 on a task of its own
        seen(event)

    watching = watchers(impatient)
    watching.emit(notice('a'))
    await watching.drain()
    assert seen.texts == ['a']


async def test_closing_gives_up_a_hook_that_never_ends(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    async def endless(event: Event) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(event.text)

    watching = watchers(endless)
    watching.emit(notice('a'))
    watching.emit(notice('b'))
    with caplog.at_level(logging.WARNING, 'habilis.agent'):
        await watching.close(0.01)
    assert ended == ['a']
    assert 'did not finish' in caplog.text
    await watching.drain()


# In a run -------------------------------------------------------------------------------------------------------------


async def test_hooks_of_the_agent_and_of_the_run_see_the_whole_run() -> None:
    order: list[str] = []
    of_agent, of_run = Seen(), Seen()

    async def slow(event: Event) -> None:
        await asyncio.sleep(0.001)
        order.append(f'agent {event.kind}')

    def note(event: Event) -> None:
        order.append(f'run {event.kind}')

    result = await watch([ANSWER], of_run, note, hooks=[slow, of_agent])
    assert of_agent.events == of_run.events
    assert of_run.kinds[0] == 'run_started'
    assert of_run.kinds[-1] == 'run_finished'
    assert of_run.events[-1].data is result
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


async def test_a_run_goes_on_when_all_its_hooks_are_broken() -> None:
    def broken(event: Event) -> None:
        raise ValueError(event.kind)

    async def broken_later(event: Event) -> None:
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

    async def slow(event: Event) -> None:
        await asyncio.sleep(0.001)
        seen(event)

    error = ModelError('no such thing')
    async with agent([error]) as working:
        with pytest.raises(ModelError):
            await working.run('x', hooks=[slow])
        assert seen.kinds[-1] == 'run_failed'
    assert seen.events[-1].data is error
    assert seen.texts[-1] == 'ModelError: no such thing'
    assert 'run_finished' not in seen.kinds


async def test_a_cancelled_run_says_so_and_is_not_held_up_by_a_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watchers.close, '__defaults__', (0.05,))
    seen = Seen()
    asked = asyncio.Event()

    async def hangs(event: Event) -> None:
        if event.kind == 'run_failed':
            await asyncio.Event().wait()

    def notes(event: Event) -> None:
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
    assert isinstance(seen.events[-1].data, asyncio.CancelledError)


def test_a_run_that_is_resumed_in_another_event_loop_is_watched_there() -> None:
    seen = Seen()
    working = agent([code('print(1)'), ANSWER], hooks=[seen])
    first = asyncio.run(working.run('x', max_steps=1))
    before = len(seen.events)
    assert asyncio.run(working.resume(first.run_id)).output == 42
    assert seen.kinds[before] == 'step_started'
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

    def __call__(self, event: Event) -> None:
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
    [requested] = seen.of('model_requested')
    assert requested.data == model.requests[0].messages


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
    [failed] = seen.of('hook_failed')
    assert failed.text.startswith('Outgoing: ')
