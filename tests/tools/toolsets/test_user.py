"""The toolset `people`: asking pauses, notifying goes on."""

import asyncio
import threading

import pytest

from habilis.tools import NeedsAnswer, Toolbox, people_toolset
from habilis.tools.events import ToolEvent


async def test_a20_a_question_without_anybody_to_answer_ends_with_the_question() -> None:
    events: list[ToolEvent] = []
    box = Toolbox([people_toolset()], emit=events.append)
    with pytest.raises(NeedsAnswer, match='Which city') as caught:
        await box.call('ask_user', 'Which city?')
    assert caught.value.question == box.take_question() == 'Which city?'
    assert [event.text for event in events if event.kind == 'question'] == ['Which city?']


async def test_a20_a_question_waits_for_the_answer() -> None:
    events: list[ToolEvent] = []

    async def ask(question: str) -> str:
        assert [event.text for event in events if event.kind == 'question'] == [question]
        await asyncio.sleep(0)
        return 'Oslo'

    box = Toolbox([people_toolset(ask)], emit=events.append)
    assert await box.call('ask_user', 'Which city?') == 'Oslo'
    assert box.take_question() is None


async def test_who_asks_may_block_without_blocking_the_event_loop() -> None:
    typed = threading.Event()

    def ask(question: str) -> str:
        return 'Oslo' if typed.wait(30) else 'nothing'

    async def type_it() -> None:
        typed.set()

    answer, _ = await asyncio.gather(Toolbox([people_toolset(ask)]).call('ask_user', '?'), type_it())
    assert answer == 'Oslo'


async def test_a20_a_notice_is_an_event_and_the_code_continues() -> None:
    events: list[ToolEvent] = []
    box = Toolbox([people_toolset()], emit=events.append)
    assert await box.call('notify_user', 'Half done') is None
    assert [event.text for event in events if event.kind == 'notice'] == ['Half done']
    assert box.take_question() is None


def test_code_calls_both_without_await() -> None:
    assert [made.is_async for made in Toolbox([people_toolset()]).functions()] == [False, False]


async def test_a_user_who_says_nothing_has_not_said_none() -> None:
    async def silent(question: str) -> None: ...

    def also_silent(question: str) -> None: ...

    for ask in (silent, also_silent):
        assert await Toolbox([people_toolset(ask)]).call('ask_user', '?') == 'The user gave no answer.'
