"""Events reach everyone who watches, in order, whatever one of them does."""

import asyncio
import contextvars
import functools
import logging
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.events import AgentEvent, HookFailed, NoticeEvent
from habilis.agent.hooks.dispatch import Dispatcher, Hook
from tests.agent.hooks.samples import call, sample
from tests.agent.hooks.watching import Seen


def watchers(*hooks: Hook) -> Dispatcher:
    """Of a run."""
    return Dispatcher(hooks, run='run-1', agent='tester')


def notice(text: object) -> NoticeEvent:
    """Something that happened."""
    return NoticeEvent(call=call(), message=str(text))


# Delivery -------------------------------------------------------------------------------------------------------------


async def test_an_event_is_made_only_if_somebody_hears_it() -> None:
    made: list[str] = []

    def make(text: str) -> NoticeEvent:
        made.append(text)
        return notice(text)

    seen = Seen()
    watchers().report(make, 'nobody')
    heard, muted = watchers(seen), watchers(seen)
    muted.is_muted = True
    muted.report(make, 'replayed')
    heard.report(make, text='heard')
    await heard.drain()
    assert made == seen.texts == ['heard']


async def test_a_plain_function_and_a_coroutine_function_see_every_event() -> None:
    plain, awaited = Seen(), Seen()

    async def slowly(event: AgentEvent) -> None:
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
    watching.emit(replace(notice('b'), agent='other', step=2))
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

    async def first_is_slow(event: AgentEvent) -> None:
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

    async def start() -> Dispatcher:
        return watchers(seen)

    asyncio.run(start()).emit(notice('late'))
    assert seen.events == []


@given(plan=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30))
def test_whatever_hooks_and_threads_do_each_event_comes_once_and_in_order(plan: list[tuple[bool, bool]]) -> None:
    seen = Seen()

    async def go() -> None:
        async def moody(event: AgentEvent) -> None:
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


async def test_a_failing_hook_is_reported_and_the_others_continue(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    error = ValueError('no disk')

    def broken(event: AgentEvent) -> None:
        if event.kind == 'notice':
            raise error

    watching = watchers(broken, seen)
    with caplog.at_level(logging.WARNING, 'habilis.agent'):
        watching.emit(notice('a'))
        watching.emit(notice('b'))
        await watching.drain()
    assert seen.kinds == ['notice', 'notice', 'hook_failed', 'hook_failed']
    assert seen.of(HookFailed)[0].error is error
    assert seen.texts[2].endswith('broken: ValueError: no disk')
    assert [record.levelname for record in caplog.records] == ['WARNING', 'WARNING']
    assert 'no disk' in caplog.text


async def test_a_hook_that_fails_at_the_very_last_event_is_reported_too() -> None:
    seen = Seen()

    async def broken(event: AgentEvent) -> None:
        await asyncio.sleep(0)
        if event.kind == 'run_finished':
            raise ValueError

    watching = watchers(broken, seen)
    watching.emit(sample('run_finished'))
    await watching.drain()
    assert seen.kinds == ['run_finished', 'hook_failed']


async def test_a_hook_that_always_fails_does_not_get_its_own_failures() -> None:
    seen = Seen()
    calls: list[str] = []

    def hopeless(event: AgentEvent) -> None:
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

    def broken(event: AgentEvent) -> None:
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

    async def gives_up(event: AgentEvent) -> None:
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


async def test_draining_without_events_returns_at_once() -> None:
    await watchers().drain()
    await watchers(Seen()).drain()


async def test_several_may_wait_for_the_same_events_and_more_may_follow() -> None:
    seen = Seen()

    async def slow(event: AgentEvent) -> None:
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

    async def waits(event: AgentEvent) -> None:
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

    async def impatient(event: AgentEvent) -> None:
        await asyncio.wait_for(watching.drain(), 10)  # in Python 3.11 on a task of its own
        seen(event)

    watching = watchers(impatient)
    watching.emit(notice('a'))
    await watching.drain()
    assert seen.texts == ['a']


async def test_closing_gives_up_a_hook_that_never_ends(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    async def endless(event: AgentEvent) -> None:
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
