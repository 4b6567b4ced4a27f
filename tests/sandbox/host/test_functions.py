"""Tools: what a function of the host looks like from inside, and what it gets and gives."""

import asyncio
import contextvars
import functools
import math
from typing import Any

import pytest

from habilis import Limits, Sandbox
from habilis.core.errors import SandboxError
from habilis.sandbox.contract import Cell
from habilis.sandbox.host.functions import HostFunction, host_function, host_functions
from tests.cases import each_case
from tests.waiting import until


def add(first: int, second: int = 2, *more: int, scale: float = 1.0) -> float:
    """Add numbers.

    All of them.
    """
    return (first + second + sum(more)) * scale


async def later(value: object) -> object:
    """Give it back later."""
    await asyncio.sleep(0)
    return value


class Machine:
    """A thing that can be called."""

    def __call__(self, x: int) -> int:
        return x + 1

    def method(self, x: int) -> int:
        """Double it."""
        return x * 2

    async def slow(self) -> str:
        return 'slow'


class SlowMachine:
    async def __call__(self) -> str:
        return 'slow too'


def with_default(x: object = object()) -> str:  # this default cannot be written as code
    return type(x).__name__


async def run(code: str, *tools: Any, seconds: float = 5) -> Cell:
    async with await Sandbox.create(tools=tools, limits=Limits(seconds=seconds)) as sandbox:
        return await sandbox.run(code)


async def value_of(code: str, *tools: Any) -> object:
    cell = await run(code, *tools)
    assert cell.error is None, cell.error.traceback
    return cell.value


# Descriptions ---------------------------------------------------------------------------------------------------------


def test_a_function_is_described() -> None:
    tool = host_function(add)
    assert (tool.name, tool.is_async, tool.parameters) == ('add', False, ('first', 'second'))
    assert tool.signature == '(first: int, second: int = 2, *more: int, scale: float = 1.0) -> float'
    assert tool.doc == 'Add numbers.\n\nAll of them.'


@each_case(
    ('function', 'name', 'is_async'),
    [
        (later, 'later', True),
        (Machine(), 'Machine', False),
        (Machine().method, 'method', False),
        (Machine().slow, 'slow', True),
        (SlowMachine(), 'SlowMachine', True),
        (functools.partial(later, 1), 'partial', True),
        (functools.partial(add, 1), 'partial', False),
        (math.hypot, 'hypot', False),
        (dict[str, int]().get, 'get', False),
        (HostFunction(name='other', call=add, is_async=False), 'other', False),
    ],
)
def test_whatever_can_be_called_can_be_a_tool(function: Any, name: str, is_async: bool) -> None:
    tool = host_function(function)
    assert (tool.name, tool.is_async) == (name, is_async)


def test_a_function_without_a_name_that_code_could_use_is_refused() -> None:
    def bad() -> None: ...

    bad.__name__ = 'class'
    for function in (lambda: 1, bad):
        with pytest.raises(SandboxError, match=r'cannot be the name of a tool: give the function a name'):
            host_function(function)


async def test_one_name_for_two_tools_is_refused() -> None:
    with pytest.raises(SandboxError, match="two tools have the name 'add'; rename one"):
        host_functions([add, later, add])
    with pytest.raises(SandboxError, match='two tools'):
        await Sandbox.create(tools=[add, add])


# Inside ---------------------------------------------------------------------------------------------------------------


async def test_inside_a_tool_has_name_documentation_and_signature() -> None:
    seen = await value_of(
        'import inspect\nadd.__name__, inspect.getdoc(add), str(inspect.signature(add)), repr(add), '
        'inspect.iscoroutinefunction(later), callable(later)',
        add,
        later,
    )
    signature = '(first: int, second: int = 2, *more: int, scale: float = 1.0) -> float'
    assert seen == ('add', 'Add numbers.\n\nAll of them.', signature, f'<tool add{signature}>', True, True)


@pytest.mark.parametrize(
    ('tool', 'call', 'value'), [(math.hypot, 'hypot(3, 4)', 5), (with_default, 'with_default()', 'object')]
)
async def test_a_tool_without_a_readable_signature_works(tool: Any, call: str, value: object) -> None:
    seen = await value_of(f'import inspect\n{call}, list(inspect.signature({tool.__name__}).parameters)', tool)
    assert seen == (value, ['args', 'kwargs'])


async def test_types_that_only_the_host_knows_stay_text() -> None:
    def take(machine: 'Machine') -> None: ...

    assert await value_of('import inspect\nstr(inspect.signature(take))', take) == "(machine: 'Machine') -> None"


async def test_methods_and_objects_are_called() -> None:
    code = 'Machine(1), method(x=4), await slow(), await SlowMachine(), partial(5)'
    machine = Machine()
    tools = (machine, machine.method, machine.slow, SlowMachine(), functools.partial(add, 1))
    assert await value_of(code, *tools) == (2, 8, 'slow', 'slow too', 6)


async def test_a_wrong_argument_is_an_error_inside() -> None:
    for call in ('add()', 'add(1, wrong=2)', 'await later()'):
        error = (await run(call, add, later)).error
        assert error is not None
        assert error.type == 'TypeError'
        assert call.removeprefix('await ').split('(')[0] in error.message


async def test_a_tool_can_be_passed_around_like_a_function() -> None:
    code = 'import functools\nlist(map(functools.partial(add, scale=2), [1, 2])), sorted([3, 1], key=add)'
    assert await value_of(code, add) == ([6.0, 8.0], [1, 3])


# The host's side ------------------------------------------------------------------------------------------------------

user: contextvars.ContextVar[str] = contextvars.ContextVar('user', default='nobody')


async def test_the_context_of_the_caller_reaches_the_tools() -> None:
    def who() -> str:
        name = user.get()
        user.set('changed by the tool')
        return name

    async def who_later() -> str:
        return user.get()

    async with await Sandbox.create(tools=[who, who_later], input=lambda prompt: user.get()) as sandbox:
        user.set('ann')
        assert (await sandbox.run('who(), await who_later(), input()')).value == ('ann', *['changed by the tool'] * 2)
        assert user.get() == 'ann'
        user.set('bob')
        assert (await sandbox.run('who()')).value == 'bob'


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize('error', [Unprintable(), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_no_exception_of_a_tool_disturbs_the_host(error: BaseException) -> None:
    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error if isinstance(error, Exception) else RuntimeError

    for call in ('fail()', 'await fail_later()'):
        cell = await run(
            f"try:\n    {call}\nexcept Exception as e:\n    print(type(e).__name__)\n'on'", fail, fail_later
        )
        assert cell.error is None
        assert cell.value == 'on'
        assert cell.stdout in ('ToolError\n', 'RuntimeError\n')
        assert [call.ok for call in cell.calls] == [False]


async def test_calls_are_listed_with_what_they_got_and_how_they_ended() -> None:
    def fail(x: int) -> None:
        raise ValueError('no')

    cell = await run('add(1, scale=2)\nawait later([None])\nfail(x=3)', add, later, fail)
    assert [(call.tool, call.arguments, call.ok, call.result, call.error) for call in cell.calls] == [
        ('add', {'first': 1, 'scale': 2}, True, '6', None),
        ('later', {'value': [None]}, True, '[None]', None),
        ('fail', {'x': 3}, False, '', 'ValueError: no'),
    ]


@pytest.mark.parametrize('name', ['max', 'tools', 'display'])
def test_a_tool_cannot_have_the_name_of_a_builtin(name: str) -> None:
    with pytest.raises(SandboxError, match=f'{name!r} cannot be the name of a tool: Python or the sandbox uses it'):
        host_functions([HostFunction(name=name, call=add, is_async=False)])


async def test_arguments_without_a_parameter_of_their_own_are_listed_by_their_number() -> None:
    cell = await run('add(1, 2, 3, 4)\nhypot(3, 4)', add, math.hypot)
    assert [call.arguments for call in cell.calls] == [
        {'first': 1, 'second': 2, '#3': 3, '#4': 4},
        {'#1': 3, '#2': 4},
    ]


async def test_a_large_result_is_listed_by_its_start() -> None:
    def load() -> list[str]:
        return ['x' * 50] * 100

    (call,) = (await run('len(load())', load)).calls
    assert call.result.startswith("['xxx")
    assert len(call.result) == 200


async def test_a_tool_that_is_no_longer_awaited_is_cancelled() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append('cancelled')
            raise

    code = 'import asyncio\ntry:\n    await asyncio.wait_for(forever(), 0.05)\nexcept TimeoutError:\n    print("late")'
    assert (await run(code, forever)).stdout == 'late\n'
    assert (await run('import asyncio\nt = asyncio.ensure_future(forever())\nawait asyncio.sleep(0)', forever)).ok
    await until(lambda: len(ended) == 2)
    assert ended == ['cancelled', 'cancelled']


async def test_ten_slow_tools_run_at_the_same_time() -> None:
    all_here, here = asyncio.Event(), set[int]()

    async def slow(n: int) -> int:
        here.add(n)
        if len(here) == 10:
            all_here.set()
        await all_here.wait()  # for ever, were they called one after another
        return n

    cell = await run('import asyncio\nawait asyncio.gather(*[slow(i) for i in range(10)])', slow)
    assert cell.value == list(range(10))


async def test_calls_at_the_same_time_are_listed_as_they_began() -> None:
    second_is_over = asyncio.Event()

    async def wait(name: str) -> None:
        if name == 'first':
            await second_is_over.wait()
        else:
            second_is_over.set()

    cell = await run("import asyncio\nawait asyncio.gather(wait('first'), wait('second'))", wait)
    assert [call.arguments for call in cell.calls] == [{'name': 'first'}, {'name': 'second'}]


async def test_a_forgotten_await_names_the_tool() -> None:
    async def fetch(url: str) -> str:
        return url

    async with await Sandbox.create(tools=[fetch]) as sandbox:
        cell = await sandbox.run("print(fetch('x'))")
    assert cell.stdout.startswith('<coroutine object fetch at 0x')
    assert "coroutine 'fetch' was never awaited" in cell.stderr
