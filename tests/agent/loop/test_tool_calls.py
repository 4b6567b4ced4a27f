"""Functions that the model calls itself, and tools that are there for one step."""

import asyncio
import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from habilis.agent import Agent, Bounds, RunLimits
from habilis.agent.loop.tool_calls import ToolCaller
from habilis.core.errors import AgentError, ToolDefinitionError
from habilis.models import FunctionCall, Reply, ScriptedModel
from habilis.tools import Deny, Toolbox, Toolset, log, todo_toolset, tool


def block(code: str) -> str:
    return f'```python\n{code}\n```'


def calling(*calls: tuple[str, dict[str, Any]]) -> Reply:
    """A reply that calls these functions."""
    return Reply(
        calls=tuple(
            FunctionCall(id=f'c{number}', name=name, arguments=json.dumps(arguments))
            for number, (name, arguments) in enumerate(calls)
        ),
        finish='calls',
    )


async def told(function: Callable[..., Any], **options: Any) -> str:
    """What a model is told of one call of this tool."""
    made = tool(side='model', **options)(function)
    caller = ToolCaller(Toolbox([made]), functions=True, python=False, bounds=Bounds())
    [text] = await caller.call([FunctionCall(id='1', name=made.name, arguments='{}')])
    return text


# Tools of one step ----------------------------------------------------------------------------------------------------


async def test_tools_of_a_step_meet_the_gates_and_the_limits_and_leave_records() -> None:
    wiped: list[int] = []

    @tool
    def wipe(disk: int) -> None:
        """Empty a disk."""
        wiped.append(disk)

    never = Agent(ScriptedModel([block('wipe(1)')]), gates=[lambda call: Deny('never')])
    few = Agent(ScriptedModel([block('wipe(1)\nwipe(2)\nwipe(3)')]), limits=RunLimits(tool_calls=2))
    async with never, few:
        run = await never.start('go')
        await run.step(tools=[wipe])
        assert wiped == []
        assert [(call.tool, call.decision) for call in run.steps[0].calls] == [('wipe', 'denied')]
        run = await few.start('go')
        await run.step(tools=[wipe])
        assert wiped == [1, 2]
        assert [call.ok for call in run.steps[0].calls] == [True, True, False]


async def test_tools_of_a_step_ask_whom_the_agent_asks() -> None:
    asked: list[str] = []

    def approve(request: Any) -> bool:
        asked.append(request.tool)
        return True

    @tool(needs_approval=True)
    def wipe() -> str:
        """Empty a disk."""
        return 'wiped'

    async with Agent(ScriptedModel([block('print(wipe())')]), approve=approve) as agent:
        run = await agent.start('go')
        await run.step(tools=[wipe])
    assert asked == ['wipe']
    assert 'wiped' in (run.steps[0].observation or '')


async def test_a_plain_function_is_a_tool_of_its_step_alone_and_is_in_the_message() -> None:
    def double(number: int) -> int:
        """Twice the number."""
        return number * 2

    model = ScriptedModel([block('print(double(4))'), block('print(double(5))')])
    async with Agent(model) as agent:
        run = await agent.start('go')
        await run.step(tools=[double], artifacts={'note': 'be quick'})
        await run.step()
    first, second = ('\n'.join(message.text for message in model.requests[number].messages[1:]) for number in range(2))
    assert 'def double(number: int) -> int:' in first
    assert 'be quick' in first
    assert 'def double' not in second
    assert '8' in (run.steps[0].observation or '')
    assert 'not defined' in (run.steps[1].observation or '')


@pytest.mark.one_protocol
async def test_tools_of_a_step_that_are_for_the_model_are_offered_to_it_for_that_step() -> None:
    @tool(side='model')
    def weather(city: str) -> str:
        """The weather in a city."""
        return f'rain in {city}'

    able = ScriptedModel([calling(('weather', {'city': 'Rome'})), 'ok'], functions=True)
    writing = ScriptedModel(['<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>', 'ok'])
    async with Agent(able) as one, Agent(writing) as other:
        for agent, model in ((one, able), (other, writing)):
            run = await agent.start('go')
            await run.step(tools=[weather])
            assert run.steps[0].observation == 'rain in Rome'
            await run.step()
            asked = [('\n'.join(m.text for m in request.messages), request.options) for request in model.requests]
            offered = [
                ['weather' in [f.name for f in options.functions], 'weather:' in text] for text, options in asked
            ]
            assert offered == [[model is able, model is writing], [False, False]]


async def test_a_tool_of_a_step_cannot_take_a_name_that_is_taken() -> None:
    def price() -> int:
        return 1

    def other() -> int:
        return 2

    async with Agent(ScriptedModel([block('final_answer(price())')]), tools=[price, todo_toolset()]) as agent:
        run = await agent.start('go', variables={'other': 3})
        for clash in ([price], [Toolset('todo', [])], [Toolset('price', [])], [other, other]):
            with pytest.raises(ToolDefinitionError, match='rename'):
                await run.step(tools=clash)
        with pytest.raises(AgentError, match='a tool has that name'):
            await run.step(tools=[other])
        result = await run.step()
    assert result is not None
    assert result.output == 1, 'those of the agent are as they were'


async def test_calls_of_tools_of_a_step_are_recorded_and_not_made_again(tmp_path: Path) -> None:
    sent: list[str] = []

    @tool(idempotent=False)
    def send(text: str) -> str:
        """Send a letter."""
        sent.append(text)
        return 'sent'

    replies = [block('print(send("a"))'), block('final_answer(1)')]
    async with Agent(ScriptedModel(replies), journal=tmp_path) as agent:
        run = await agent.start('go')
        await run.step(tools=[send])
        assert run.steps[0].calls[0].tool == 'send'
    async with Agent(ScriptedModel(replies[1:]), journal=tmp_path) as agent:
        result = await agent.resume(run.id)
    assert (result.output, sent) == (1, ['a'])
    assert result.steps[0].calls[0].tool == 'send'


# What the model reads of a call ---------------------------------------------------------------------------------------


async def test_whatever_plain_data_a_tool_returns_can_be_read_by_the_model() -> None:
    day = datetime.date(2024, 1, 1)
    for value, text in (
        ({day: 3}, '{"2024-01-01": 3}'),
        ({(1, 2): 'a', 3: 'b', True: 'c'}, '{"(1, 2)": "a", "3": "b", "true": "c"}'),
        ({'city': 'Zürich'}, '{"city": "Zürich"}'),
        ({3, 1, 2}, '[1, 2, 3]'),
        ([{'b', 'a', 1}, frozenset({'x'})], '[[1, "a", "b"], ["x"]]'),
        ((day, None), '["2024-01-01", null]'),
        ('Zürich', 'Zürich'),
        ('half \ud800', 'half \\ud800'),
        (['half \ud800'], '["half \\ud800"]'),
    ):

        def give(value: object = value) -> Any:
            return value

        assert await told(give) == text


async def test_an_error_that_cannot_be_read_is_reported_by_its_class() -> None:
    class Sulky(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fail() -> int:
        raise Sulky

    def fail_with_words() -> int:
        msg = 'it is late'
        raise LookupError(msg)

    assert await told(fail) == 'Sulky'
    assert await told(fail_with_words) == 'LookupError: it is late'


async def test_a_tool_that_cancels_itself_or_raises_anything_does_not_end_the_run() -> None:
    class Odd(BaseException):
        pass

    async def cancel() -> int:
        task = asyncio.create_task(asyncio.sleep(9))
        task.cancel()
        await task
        return 1

    async def odd() -> int:
        msg = 'very'
        raise Odd(msg)

    def leave() -> int:
        raise SystemExit(3)

    assert await told(cancel) == 'ToolError: the tool was cancelled'
    assert await told(odd) == 'Odd: very'
    assert 'tried to end the program' in await told(leave)


async def test_a_run_that_continues_after_a_tool_cancelled_itself_can_be_resumed(tmp_path: Path) -> None:
    called = 0

    @tool(side='model')
    async def boom() -> int:
        """Fails."""
        nonlocal called
        called += 1
        task = asyncio.create_task(asyncio.sleep(9))
        task.cancel()
        return await task or 0

    replies = [calling(('boom', {})), block('x = 1'), 'the end']
    for number in (2, 3):
        model = ScriptedModel(replies if number == 2 else replies[2:], functions=True)
        async with Agent(model, tools=[boom], journal=tmp_path) as agent:
            if number == 2:
                result = await agent.run('go', max_steps=2, run_id='r')
            else:
                result = await agent.resume('r')
    assert (result.output, called) == ('the end', 1)


async def test_a_run_that_is_cancelled_cancels_the_calls_of_the_model() -> None:
    begun, ended = asyncio.Event(), list[str]()

    @tool(side='model')
    async def wait(name: str) -> None:
        """Wait for ever."""
        begun.set()
        try:
            await asyncio.sleep(99)
        finally:
            ended.append(name)

    model = ScriptedModel([calling(('wait', {'name': 'a'}), ('wait', {'name': 'b'}))], functions=True)
    async with Agent(model, tools=[wait]) as agent:
        running = asyncio.create_task(agent.run('go'))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert sorted(ended) == ['a', 'b']


async def test_the_log_and_the_hidden_error_of_a_tool_are_shown_to_the_model() -> None:
    """A13."""

    def fetch() -> str:
        log('asking the server')
        msg = 'no such page'
        raise LookupError(msg)

    def note() -> int:
        log('a note')
        return 4

    text = await told(fetch, on_error='none')
    assert (
        text == 'null\nTool log:\nfetch: asking the server\nfetch failed and returned None: LookupError: no such page'
    )
    assert await told(note) == '4\nTool log:\nnote: a note'


# Several calls in one reply -------------------------------------------------------------------------------------------


async def test_the_calls_of_one_reply_run_side_by_side_and_are_answered_in_their_order() -> None:
    """A18."""
    inside = most = 0

    @tool(side='model')
    async def look(place: int) -> int:
        """Look somewhere."""
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.3 - place / 10)
        inside -= 1
        return place

    calls = [('look', {'place': place}) for place in range(3)]
    code = ('python', {'code': 'print(9)'})
    model = ScriptedModel([calling(*calls, code, calls[0], ('lok', {})), 'done'], functions=True)
    async with Agent(model, tools=[look]) as agent:
        result = await agent.run('go')
    assert most == 3
    answers = [message for message in result.messages if message.role == 'tool']
    assert [message.call_id for message in answers] == ['c0', 'c1', 'c2', 'c3', 'c4', 'c5']
    assert [message.text for message in answers[:3]] == ['0', '1', '2']
    assert '9' in answers[3].text
    assert answers[4].text == '0'
    assert "no function 'lok'" in answers[5].text
    assert [(call.arguments or {})['place'] for call in result.steps[0].calls] == [0, 1, 2, 0]


async def test_calls_side_by_side_keep_the_limit_exactly() -> None:
    made: list[int] = []

    @tool(side='model')
    async def look(place: int) -> int:
        """Look somewhere."""
        await asyncio.sleep(0.01)
        made.append(place)
        return place

    model = ScriptedModel([calling(*[('look', {'place': place}) for place in range(5)])], functions=True)
    async with Agent(model, tools=[look], limits=RunLimits(tool_calls=3)) as agent:
        result = await agent.run('go')
    assert result.ended == 'max_tool_calls'
    assert made == [0, 1, 2]
    assert [call.ok for call in result.steps[0].calls] == [True, True, True, False, False]


async def test_calls_side_by_side_are_answered_from_the_record_when_the_run_is_resumed(tmp_path: Path) -> None:
    made: list[int] = []

    @tool(side='model', idempotent=False)
    async def roll(sides: int) -> str:
        """Throw a die."""
        number = len(made)
        made.append(sides)
        await asyncio.sleep(0.05 * (3 - number))  # the last is ready first
        return f'throw {number} of {sides}'

    calls = [('roll', {'sides': sides}) for sides in (6, 6, 8)]
    async with Agent(ScriptedModel([calling(*calls)], functions=True), tools=[roll], journal=tmp_path) as agent:
        stopped = await agent.run('go', max_steps=1, run_id='r')
    later = ScriptedModel(['done'], functions=True)
    async with Agent(later, tools=[roll], journal=tmp_path) as agent:
        result = await agent.resume('r')
    assert made == [6, 6, 8]
    assert result.output == 'done'
    assert result.steps[0].observation == stopped.steps[0].observation == 'throw 0 of 6\nthrow 1 of 6\nthrow 2 of 8'
    assert [call.arguments for call in result.steps[0].calls] == [{'sides': sides} for sides in (6, 6, 8)]


async def test_a_call_that_waits_for_a_person_lets_those_beside_it_end(tmp_path: Path) -> None:
    made: list[str] = []

    @tool(side='model', idempotent=False)
    async def send(text: str) -> str:
        """Send a letter."""
        await asyncio.sleep(0.01)
        made.append(text)
        return f'sent {text}'

    @tool(side='model', needs_approval=True, idempotent=False)
    async def wipe(disk: int) -> str:
        """Empty a disk."""
        made.append(str(disk))
        return f'wiped {disk}'

    calls = (('wipe', {'disk': 1}), ('send', {'text': 'a'}), ('wipe', {'disk': 2}), ('send', {'text': 'b'}))
    model = ScriptedModel([calling(*calls), 'done'], functions=True)
    async with Agent(model, tools=[send, wipe], journal=tmp_path) as agent:
        result = await agent.run('go')
        assert result.ended == 'approval'
        assert made == ['a', 'b']
        assert [waiting.tool for waiting in result.waiting] == ['wipe', 'wipe']
        for waiting in result.waiting:
            await agent.answer(result.run_id, True, path=waiting.path)
        result = await agent.resume(result.run_id)
    assert result.output == 'done'
    assert made == ['a', 'b', '1', '2']
    assert result.steps[0].observation == 'wiped 1\nsent a\nwiped 2\nsent b'


@pytest.mark.parametrize('order', [(0, 0, 0), (2, 1, 0), (1, 0, 0)])
async def test_calls_side_by_side_may_be_approved_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    made: list[int] = []

    @tool(side='model', needs_approval=True, idempotent=False)
    async def wipe(disk: int) -> str:
        """Empty a disk."""
        made.append(disk)
        return f'wiped {disk}'

    calls = [('wipe', {'disk': disk}) for disk in range(3)]
    model = ScriptedModel([calling(*calls), 'done'], functions=True)
    async with Agent(model, tools=[wipe], journal=tmp_path) as agent:
        result = await agent.run('go')
        for number in order:
            await agent.answer(result.run_id, True, path=result.waiting[number].path)
            result = await agent.resume(result.run_id)
    assert result.output == 'done'
    assert sorted(made) == [0, 1, 2]
    assert result.steps[0].observation == 'wiped 0\nwiped 1\nwiped 2'


# Without Python -------------------------------------------------------------------------------------------------------


async def test_without_python_every_tool_is_for_the_model() -> None:
    def plus(a: int, b: int) -> int:
        """Add."""
        return a + b

    @tool
    async def minus(a: int, b: int) -> int:
        """Subtract."""
        return a - b

    calls = calling(('plus', {'a': 1, 'b': 2}), ('minus', {'a': 1, 'b': 2}))
    model = ScriptedModel([calls, 'done'], functions=True)
    async with Agent(model, tools=[plus, Toolset('more', [minus])], python=False) as agent:
        result = await agent.run('go')
    assert [function.name for function in model.requests[0].options.functions] == ['plus', 'minus']
    assert result.steps[0].observation == '3\n-1'


async def test_without_python_variables_are_refused_and_documents_do_not_speak_of_code() -> None:
    model = ScriptedModel(['read'])
    async with Agent(model, python=False, observations=Bounds(tokens=40, lines=5)) as agent:
        with pytest.raises(AgentError, match='python=False'):
            await agent.run('go', variables={'x': 1})
        await agent.run('go', artifacts={'note': 'line\n' * 50})
    said = model.requests[0].messages[-1].text
    assert 'characters truncated' in said
    assert 'artifacts' not in said
    assert 'In code' not in said


async def test_without_python_a_reply_with_code_is_an_answer() -> None:
    text = f'Here it is:\n{block("print(1)")}\nIt prints 1.'
    for reply in (text, f'<think>Hm, {block("x = 2")}</think>\n{text}'):
        async with Agent(ScriptedModel([reply]), python=False) as agent:
            result = await agent.run('Write a program.')
        assert (result.output, result.ended) == (text, 'answer')
