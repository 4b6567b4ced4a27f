"""`Toolbox`: what there is, who may call it, and what is kept of a call."""

import asyncio
import logging
import threading
from pathlib import Path

import pytest

from habilis.core.errors import ToolArgumentsError, ToolCallError, ToolDefinitionError, ToolDenied, ToolResultError
from habilis.sandbox.contract import ToolCall
from habilis.tools import (
    Files,
    GateCall,
    NeedsAnswer,
    Toolbox,
    Toolset,
    log,
    people_toolset,
    samples_toolset,
    todo_toolset,
    tool,
)
from habilis.tools.events import ToolCalled, ToolEvent, ToolReturned
from tests.tools.boxes import function, on_a_thread


@tool
def double(x: int) -> int:
    """Twice as much."""
    log(f'doubling {x}')
    return x * 2


@tool
async def wait(x: int = 0) -> int:
    """Take a moment."""
    await asyncio.sleep(0)
    return x


@tool(side='model')
def consult(topic: str, depth: int = 1) -> str:
    """Ask the expert."""
    return topic * depth


@tool(side='both')
def shared() -> str:
    """For everyone."""
    return 'both'


def failing(kind: type[Exception] = ValueError) -> int:
    raise kind('no luck')


# What there is --------------------------------------------------------------------------------------------------------


def test_plain_functions_become_tools() -> None:
    def plus(x: int) -> int:
        return x + 1

    assert Toolbox([plus]).names() == ['plus']


def test_the_same_name_twice_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="two tools have the name 'double'"):
        Toolbox([double, Toolset('more', [double])])
    with pytest.raises(ToolDefinitionError, match="two tools have the name 'double'"):
        Toolset('more', [double, double])
    with pytest.raises(ToolDefinitionError, match="two toolsets have the name 'more'"):
        Toolbox([Toolset('more', [double]), Toolset('more', [wait])])
    with pytest.raises(ToolDefinitionError, match="a tool and a toolset have the same name 'double'"):
        Toolbox([double, Toolset('double', [wait])])


async def test_a14_each_side_sees_and_calls_its_own_tools() -> None:
    box = Toolbox([double, consult, shared])
    assert [made.name for made in box.functions()] == ['double', 'shared']
    assert ('def double' in box.stubs(), 'def consult' in box.stubs(), 'def shared' in box.stubs()) == (
        True,
        False,
        True,
    )
    assert [made.name for made in box.model_functions()] == ['consult', 'shared']
    assert await box.call_for_model('consult', {'topic': 'ab', 'depth': 2}) == 'abab'
    with pytest.raises(ToolCallError, match="there is no tool called 'double'; there are: consult, shared"):
        await box.call_for_model('double', {'x': 1})
    with pytest.raises(ToolCallError, match="there is no tool called 'consult'"):
        await box.call('consult', 'ab')


def test_ready_toolsets_can_be_for_the_model(tmp_path: Path) -> None:
    for made in (
        Files(tmp_path, side='model'),
        people_toolset(side='model'),
        samples_toolset(side='model'),
        todo_toolset(side='model'),
    ):
        box = Toolbox([made])
        assert box.names() == []
        assert box.names('model') == [each.name for each in made.tools] == [f.name for f in box.model_functions()]


def test_a_function_for_the_model_has_a_schema() -> None:
    [made] = Toolbox([consult]).model_functions()
    assert (made.name, made.description) == ('consult', 'Ask the expert.')
    assert made.parameters['required'] == ['topic']


async def test_a22_a_tool_that_is_switched_off_is_absent_and_refused() -> None:
    box = Toolbox([wait, Toolset('numbers', [double]), Toolset('words', [shared, consult], enabled=False)])
    assert box.names() == ['wait', 'double']
    assert 'shared' not in box.stubs()
    assert box.model_functions() == []
    with pytest.raises(ToolDenied, match='shared was not called: it is disabled'):
        await on_a_thread(function(box, 'shared').call)
    with pytest.raises(ToolDenied, match='consult was not called: it is disabled'):
        await box.call_for_model('consult', {'topic': 'a'})
    assert [record.decision for record in box.take_records()] == ['refused', 'refused']


async def test_a22_tools_and_toolsets_are_switched_during_a_run() -> None:
    box = Toolbox([wait, Toolset('words', [shared, consult], enabled=False)])
    call = function(box, 'shared').call
    box.enable('words')
    assert await on_a_thread(call) == 'both'
    box.disable('shared')
    with pytest.raises(ToolDenied):
        await on_a_thread(call)
    assert await box.call_for_model('consult', {'topic': 'a'}) == 'a'
    box.enable('shared')
    assert await on_a_thread(call) == 'both'
    box.disable('words')
    assert box.names() == ['wait']
    with pytest.raises(ToolDefinitionError, match="no tool or toolset called 'nope'; there are: words, wait, shared"):
        box.enable('nope')


def test_the_nearest_names_are_found() -> None:
    box = Toolbox([double, wait, consult])
    assert box.nearest('dubble') == ['double']
    assert box.nearest('Wait') == ['wait']
    assert box.nearest('consult') == []
    assert box.nearest('zzz') == []


# What happens in a call -----------------------------------------------------------------------------------------------


async def test_a_parameter_may_have_any_name() -> None:
    def greet(name: str, self: str) -> str:
        return f'{self} {name}'

    assert await Toolbox([greet]).call('greet', name='Ana', self='Hi') == 'Hi Ana'


async def test_a_call_leaves_a_record() -> None:
    box = Toolbox([double])
    assert await on_a_thread(function(box, 'double').call, 4) == 8
    [record] = box.take_records()
    assert isinstance(record, ToolCall)
    assert (record.tool, record.arguments, record.ok, record.result) == ('double', {'x': 4}, True, '8')
    assert (record.error, record.log, record.decision, record.side) == (None, ('doubling 4',), 'allowed', 'code')
    assert record.seconds >= 0
    assert box.take_records() == []


async def test_a_failed_call_leaves_its_error_in_the_record() -> None:
    box = Toolbox([failing])
    with pytest.raises(ValueError, match='no luck'):
        await box.call('failing')
    [record] = box.take_records()
    assert (record.ok, record.error, record.hidden) == (False, 'ValueError: no luck', False)


async def test_wrong_arguments_are_recorded_as_they_were_written() -> None:
    box = Toolbox([double])
    with pytest.raises(ToolArgumentsError):
        await box.call('double', 'x', 2, y=3)
    [record] = box.take_records()
    assert (record.arguments, record.decision) == ({'x': 'x', '#2': 2, 'y': 3}, 'invalid')


async def test_a13_a_tool_may_give_none_and_have_its_error_shown() -> None:
    box = Toolbox([tool(on_error='none')(failing), double])
    assert await on_a_thread(function(box, 'failing').call) is None
    assert await on_a_thread(function(box, 'double').call, 1) == 2
    first, second = box.take_records()
    assert (first.ok, first.error, first.hidden) == (False, 'ValueError: no luck', True)
    assert second.ok


async def test_a13_a_wrong_result_or_a_late_one_is_hidden_as_well() -> None:
    def wrong() -> object:
        return 'text'

    wrong.__annotations__['return'] = int

    @tool(on_error='none', timeout=0.01)
    async def late() -> None:
        await asyncio.Event().wait()

    box = Toolbox([tool(on_error='none')(wrong), late])
    assert await box.call('wrong') is None
    assert await box.call('late') is None
    errors = [record.error or '' for record in box.take_records()]
    assert [error.split(':')[0] for error in errors] == ['ToolResultError', 'ToolTimeout']


async def test_a13_wrong_arguments_and_denials_are_not_hidden() -> None:
    box = Toolbox([tool(on_error='none')(failing), tool(on_error='none', needs_approval=True, name='risky')(failing)])
    with pytest.raises(ToolArgumentsError):
        await box.call('failing', 5)
    with pytest.raises(ToolDenied):
        await box.call('risky')


async def test_retries_are_logged() -> None:
    box = Toolbox([tool(retries=1)(failing)])
    with pytest.raises(ValueError, match='no luck'):
        await box.call('failing')
    assert box.take_records()[0].log == ('attempt 1 failed: ValueError: no luck; retrying',)


async def test_lines_of_calls_at_the_same_time_are_kept_apart() -> None:
    @tool
    async def say(word: str) -> None:
        log(word)
        await asyncio.sleep(0)
        log(word.upper())

    box = Toolbox([say])
    await asyncio.gather(*(box.call('say', word) for word in 'abc'))
    assert sorted(record.log for record in box.take_records()) == [('a', 'A'), ('b', 'B'), ('c', 'C')]


async def test_a_tool_that_logs_without_end_is_cut_off() -> None:
    @tool
    def chatter() -> None:
        for number in range(5000):
            log(number)

    box = Toolbox([chatter])
    await box.call('chatter')
    lines = box.take_records()[0].log
    assert len(lines) == 1001
    assert lines[-1] == '(more than 1,000 lines: the rest is dropped)'


def test_a_log_line_outside_a_call_goes_to_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, 'habilis.tools'):
        log('alone')
    assert 'alone' in caplog.text


async def test_an_exception_that_cannot_be_shown_is_recorded_all_the_same() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    @tool
    def fail() -> None:
        raise Broken

    box = Toolbox([fail])
    with pytest.raises(Broken):
        await box.call('fail')
    assert box.take_records()[0].error == 'Broken'


async def test_a_question_for_a_person_is_kept_whatever_the_code_makes_of_it() -> None:
    @tool(on_error='none')
    def ask(text: str) -> None:
        raise NeedsAnswer(text)

    box = Toolbox([ask])
    for text in ('first?', 'second?'):
        with pytest.raises(NeedsAnswer):
            await box.call('ask', text)
    assert (box.take_question(), box.take_question()) == ('first?', None)


async def test_a_cancelled_call_leaves_a_record() -> None:
    started = asyncio.Event()

    @tool
    async def forever() -> None:
        started.set()
        await asyncio.Event().wait()

    box = Toolbox([forever])
    task = asyncio.create_task(box.call('forever'))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [record] = box.take_records()
    assert (record.ok, record.error) == (False, 'CancelledError')


async def test_records_that_are_not_read_are_bounded() -> None:
    box = Toolbox([double])
    call = function(box, 'double').call
    await on_a_thread(lambda: [call(1) for _ in range(10_050)])
    records = box.take_records()
    assert (len(records), records[-1].id) == (10_000, 10_050)


# Events ---------------------------------------------------------------------------------------------------------------


async def test_events_arrive_in_order_on_the_event_loop() -> None:
    events: list[tuple[ToolEvent, int]] = []
    box = Toolbox([double], emit=lambda event: events.append((event, threading.get_ident())))
    await on_a_thread(function(box, 'double').call, 4)
    await asyncio.sleep(0)
    assert [event.kind for event, _ in events] == ['tool_called', 'tool_logged', 'tool_returned']
    assert {thread for _, thread in events} == {threading.get_ident()}
    called, logged, returned = (event for event, _ in events)
    assert isinstance(called, ToolCalled)
    assert called.call == GateCall(id=1, tool='double', arguments={'x': 4})
    assert (logged.text, called.text) == ('doubling 4', 'double')
    assert isinstance(returned, ToolReturned)
    assert returned.call == box.take_records()[0]


async def test_a_listener_that_fails_does_not_disturb_the_call(caplog: pytest.LogCaptureFixture) -> None:
    def emit(event: ToolEvent) -> None:
        raise RuntimeError(event.kind)

    assert await Toolbox([double], emit=emit).call('double', 4) == 8
    assert 'a listener failed on the event tool_called' in caplog.text


async def test_a_result_is_checked_in_every_way_of_calling() -> None:
    def wrong() -> object:
        return 'text'

    wrong.__annotations__['return'] = int
    box = Toolbox([tool(side='both')(wrong)])
    with pytest.raises(ToolResultError):
        await on_a_thread(function(box, 'wrong').call)
    with pytest.raises(ToolResultError):
        await box.call_for_model('wrong', {})
