"""`@tool`: what can be a tool, and what a call of it does."""

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest

from habilis.core.errors import ToolCallError, ToolDefinitionError, ToolResultError, ToolTimeout
from habilis.tools import NeedsAnswer, Tool, Toolbox, tool
from habilis.tools.tool import AnyTool, as_tool
from tests.cases import each_case


@tool
def add(first: int, second: int = 2) -> int:
    """Add two numbers."""
    return first + second


@tool
async def later(value: str) -> str:
    """Give it back later."""
    await asyncio.sleep(0)
    return value


class Counter:
    """Counts."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    @tool
    def up(self, by: int = 1) -> int:
        """Count up."""
        self.count += by
        return self.count

    @tool(name='wait_up')
    async def slow_up(self, by: int) -> int:
        self.count += by
        return self.count

    @tool
    @staticmethod
    def double(x: int) -> int:
        return x * 2

    @staticmethod
    @tool
    def triple(x: int) -> int:
        return x * 3

    @tool
    @classmethod
    def title(cls, suffix: str) -> str:
        return cls.__name__ + suffix

    @classmethod
    @tool
    def name_of(cls, suffix: str) -> str:
        return cls.__name__ + suffix


class Machine:
    """A thing that can be called."""

    def __call__(self, x: int) -> int:
        """Work."""
        return x + 1


class SlowMachine:
    async def __call__(self, x: int) -> int:
        return x + 1


# What can be one ------------------------------------------------------------------------------------------------------


def test_a_tool_stays_callable_as_before() -> None:
    assert add(1) == 3
    assert add.__doc__ == 'Add two numbers.'
    assert list(inspect.signature(add).parameters) == ['first', 'second']


async def test_an_async_tool_stays_awaitable_as_before() -> None:
    assert await later('x') == 'x'


def test_a_tool_knows_its_name_documentation_and_kind() -> None:
    assert (add.name, add.description, add.is_async) == ('add', 'Add two numbers.', False)
    assert (later.name, later.is_async) == ('later', True)


async def test_a_method_keeps_its_instance() -> None:
    one, other = Counter(), Counter(100)
    assert await one.up.invoke((5,)) == 5
    assert await other.up.invoke((), {'by': 1}) == 101
    assert await one.slow_up.invoke((1,)) == 6
    assert one.up() == 7
    assert (one.slow_up.name, one.slow_up.is_async) == ('wait_up', True)
    assert one.up.signature == '(by: int = 1) -> int'


def test_a_tool_does_not_keep_other_instances_alive() -> None:
    import gc
    import weakref

    first = Counter()
    first.up.check()
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize('name', ['up', 'title'])
def test_a_method_without_its_instance_is_refused(name: str) -> None:
    unbound = inspect.getattr_static(Counter, name)
    with pytest.raises(ToolDefinitionError, match='is a method: pass the tool of an instance'):
        Toolbox([unbound])


async def test_static_and_class_methods_are_tools_with_either_order_of_decorators() -> None:
    tools: list[Any] = [Counter.double, Counter().double, Counter.triple, Counter().triple]
    assert [await as_tool(made).invoke((3,)) for made in tools] == [6, 6, 9, 9]
    named: list[Any] = [Counter.title, Counter().title, Counter.name_of, Counter().name_of]
    assert [await as_tool(made).invoke(('!',)) for made in named] == ['Counter!'] * 4


async def test_an_object_that_can_be_called_is_a_tool() -> None:
    assert (tool(Machine()).name, tool(Machine()).description) == ('Machine', 'Work.')
    assert await tool(Machine()).invoke((1,)) == 2
    slow = tool(name='slow')(SlowMachine())
    assert slow.is_async
    assert await slow.invoke((1,)) == 2


async def test_a_class_is_a_tool_that_returns_an_instance() -> None:
    @tool
    @dataclass
    class Pt:
        """A point."""

        x: int
        y: int = 0

    assert Pt.signature == '(x: int, y: int = 0) -> Pt'
    assert await Pt.invoke((1,)) == {'x': 1, 'y': 0}

    class Page(pydantic.BaseModel):
        data: str

    assert await tool(Page).invoke((), {'data': 'd'}) == {'data': 'd'}
    assert tool(Page).signature == '(*, data: str) -> Page'


async def test_a_partial_is_a_tool_with_the_parameters_that_are_left() -> None:
    def power(base: int, exponent: int) -> int:
        """Multiply."""
        return base**exponent

    square = tool(functools.partial(power, exponent=2))
    assert (square.name, square.description) == ('power', 'Multiply.')
    assert await square.invoke((3,)) == 9


async def test_a_decorated_function_keeps_its_hints() -> None:
    def noisy(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> int:
            return function(*args, **kwargs) + 1

        return wrapper

    @tool
    @noisy
    def plus(x: int) -> int:
        return x

    assert plus.signature == '(x: int) -> int'
    assert await plus.invoke((1,)) == 2


def test_a_tool_can_get_other_options_and_another_name() -> None:
    again = tool(name='sum_up', timeout=3)(add)
    assert (again.name, again.options.timeout) == ('sum_up', 3)
    assert (add.name, add.options.timeout) == ('add', None)


@pytest.mark.parametrize('thing', [3, 'text', None, [1]])
def test_what_cannot_be_called_is_no_tool(thing: Any) -> None:
    with pytest.raises(ToolDefinitionError, match='is not callable'):
        Toolbox([thing])


def test_a_hint_that_means_nothing_is_named() -> None:
    def broken(x: object) -> None: ...

    broken.__annotations__['x'] = 'Nowhere'
    with pytest.raises(ToolDefinitionError, match=r"broken cannot be a tool: .*'Nowhere' is not defined"):
        tool(broken).check()


def test_a_hint_that_cannot_be_checked_is_named() -> None:
    class Connection:
        pass

    @tool
    def use(connection: Connection) -> None: ...

    @tool
    def make() -> Connection:
        return Connection()

    with pytest.raises(ToolDefinitionError, match="use cannot be a tool: parameter 'connection': the type Connection"):
        use.check()
    with pytest.raises(ToolDefinitionError, match='make cannot be a tool: its result: the type Connection'):
        Toolbox([make])


@each_case(
    ('options', 'complaint'),
    [
        ({'timeout': 0}, 'timeout=0'),
        ({'timeout': 'long'}, "timeout='long'"),
        ({'approval': True}, "@tool has no option 'approval': did you mean needs_approval?"),
        ({'retries': -1}, 'retries=-1'),
        ({'retries': 1.5}, 'retries=1.5'),
        ({'retries': 1, 'idempotent': False}, 'choose one'),
        ({'side': 'left'}, "side='left'"),
        ({'on_error': 'shrug'}, "on_error='shrug'"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ToolDefinitionError, match=complaint):
        tool(**options)


# What a call does -----------------------------------------------------------------------------------------------------


async def test_a_plain_function_does_not_block_the_event_loop() -> None:
    seen: list[threading.Thread] = []
    wake = threading.Event()

    @tool
    def block() -> bool:
        seen.append(threading.current_thread())
        return wake.wait(30)

    async def free() -> None:
        wake.set()

    result, _ = await asyncio.gather(block.invoke(), free())
    assert result is True
    assert seen != [threading.current_thread()]


async def test_context_variables_reach_a_plain_function() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar('user')
    user.set('ann')

    @tool
    def who() -> str:
        return user.get()

    assert await who.invoke() == 'ann'


@pytest.mark.parametrize('kind', ['plain', 'async'])
async def test_a_tool_that_takes_too_long_is_given_up(kind: str) -> None:
    wake = threading.Event()

    async def wait() -> None:
        await asyncio.Event().wait()

    def block() -> None:
        wake.wait(30)

    slow: AnyTool = tool(name='slow', timeout=0.02)(wait if kind == 'async' else block)
    with pytest.raises(ToolTimeout, match=r'slow took longer than 0\.02 s'):
        await slow.invoke()
    wake.set()


async def test_a_timeout_error_of_the_tool_itself_stays_what_it_is() -> None:
    @tool(timeout=30)
    async def give_up() -> None:
        raise TimeoutError('the server is slow')

    with pytest.raises(TimeoutError, match='the server is slow') as caught:
        await give_up.invoke()
    assert not isinstance(caught.value, ToolCallError)


async def test_a_failed_call_is_repeated_as_often_as_allowed() -> None:
    attempts: list[int] = []

    @tool(retries=2)
    def flaky(successes_from: int) -> int:
        attempts.append(1)
        if len(attempts) < successes_from:
            raise ConnectionError('again')
        return len(attempts)

    assert await flaky.invoke((3,)) == 3
    attempts.clear()
    with pytest.raises(ConnectionError, match='again'):
        await flaky.invoke((4,))
    assert len(attempts) == 3


async def test_a_question_to_a_person_is_not_repeated() -> None:
    asked: list[str] = []

    @tool(retries=3)
    def ask() -> None:
        asked.append('why')
        raise NeedsAnswer('why')

    with pytest.raises(NeedsAnswer):
        await ask.invoke()
    assert asked == ['why']


async def test_a_tool_that_exits_does_not_end_the_program() -> None:
    @tool
    async def leave() -> None:
        raise SystemExit(3)

    @tool(name='leave_too')
    def leave_in_a_thread() -> None:
        raise SystemExit

    for made in (leave, leave_in_a_thread):
        with pytest.raises(ToolCallError, match='tried to end the program'):
            await made.invoke()


async def test_a_stop_iteration_does_not_hang_the_caller() -> None:
    empty: Iterator[int] = iter(())
    with pytest.raises(RuntimeError, match='StopIteration'):
        await tool(name='first')(lambda: next(empty)).invoke()


async def test_a_plain_function_that_returns_a_coroutine_is_an_error() -> None:
    with pytest.raises(ToolCallError, match='define it with `async def`'):
        await tool(name='forgot')(lambda: later('x')).invoke()


async def test_a10_a_result_of_the_wrong_shape_is_the_tools_error() -> None:
    @tool
    def count() -> int:
        return 'three'  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    with pytest.raises(ToolResultError, match=r"count returned .*\n  result: expected int, got 'three' \(str\)"):
        await count.invoke()


def test_a_tool_shows_itself_by_name() -> None:
    assert repr(add) == '<tool add>'
    assert isinstance(add, Tool)
