"""Tools called by code in a real sandbox."""

import asyncio
import enum
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from habilis import Limits, Sandbox
from habilis.tools import (
    ApprovalRequest,
    ChangeResult,
    Deny,
    Files,
    GateCall,
    Toolbox,
    Toolset,
    log,
    people_toolset,
    todo_toolset,
    tool,
)
from habilis.tools.events import ToolEvent

pytestmark = pytest.mark.usefixtures('component')


class Size(enum.Enum):
    SMALL = 's'
    LARGE = 'l'


@dataclass
class Hit:
    """A page."""

    url: str
    size: Size = Size.SMALL


def agree(call: GateCall) -> None:
    """A gate without objection."""


class Calls:
    """Tools that note what they get."""

    def __init__(self) -> None:
        self.got: list[object] = []

    @tool
    def f(self, n: int, flag: bool = True, s: str = 'x') -> list[object]:
        """Take falsy values."""
        self.got.append((n, flag, s))
        return [n, flag, s]

    @tool
    async def search(self, query: str, hit: Hit | None = None) -> list[Hit]:
        """Search."""
        self.got.append(hit)
        return [Hit(query), hit or Hit('none', Size.LARGE)]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@asynccontextmanager
async def sandbox(box: Toolbox, **options: Any) -> AsyncGenerator[Sandbox]:
    async with await Sandbox.create(tools=box.functions(), limits=Limits(seconds=20), **options) as made:
        yield made


async def run(box: Toolbox, code: str) -> Any:
    """The value of the code's last expression."""
    async with sandbox(box) as made:
        cell = await made.run(code)
    assert cell.error is None, cell.error.traceback
    return cell.value


async def error(box: Toolbox, code: str) -> str:
    """The error that ends the code."""
    async with sandbox(box) as made:
        cell = await made.run(code)
    assert cell.error is not None
    return str(cell.error)


async def test_a12_falsy_values_arrive_unchanged(calls: Calls) -> None:
    assert await run(Toolbox([calls.f]), "f(0, flag=False, s='')") == [0, False, '']
    assert calls.got == [(0, False, '')]


async def test_a9_a_wrong_argument_is_explained_to_the_code_and_nothing_is_called(calls: Calls) -> None:
    said = await error(Toolbox([calls.f]), "f('0', flag=1)")
    assert said.startswith('ToolError: f was not called: invalid arguments:')
    assert "  n: expected int, got '0' (str)\n  flag: expected bool, got 1 (int)\nf(n: int" in said
    assert calls.got == []


async def test_a_dict_becomes_a_dataclass_and_comes_back_as_a_dict(calls: Calls) -> None:
    value = await run(Toolbox([calls.search]), "await search('q', {'url': 'u', 'size': 'l'})")
    assert calls.got == [Hit('u', Size.LARGE)]
    assert value == [{'url': 'q', 'size': 's'}, {'url': 'u', 'size': 'l'}]


async def test_a_tool_looks_inside_as_it_does_in_its_stub(calls: Calls) -> None:
    code = 'import inspect\n(str(inspect.signature(f)), f.__doc__, inspect.iscoroutinefunction(search))'
    assert await run(Toolbox([calls.f, calls.search]), code) == (
        "(n: int, flag: bool = True, s: str = 'x') -> list[object]",
        'Take falsy values.',
        True,
    )


@pytest.mark.parametrize('gates', [[], [agree]])
async def test_a18_three_calls_run_at_the_same_time(gates: list[Any]) -> None:
    here = 0
    all_here = asyncio.Event()

    @tool
    async def meet() -> int:
        """Return when three are here; one after the other they never would be."""
        nonlocal here
        here += 1
        if here == 3:
            all_here.set()
        await all_here.wait()
        return here

    code = 'import asyncio\nawait asyncio.gather(meet(), meet(), meet())'
    assert await run(Toolbox([meet], gates=gates), code) == [3, 3, 3]


async def test_a13_a_failing_tool_gives_none_and_the_code_continues() -> None:
    @tool(on_error='none')
    def lookup(key: str) -> str:
        log(f'looking for {key}')
        raise LookupError(key)

    box = Toolbox([lookup])
    assert await run(box, "x = lookup('a')\n(x, 'went on')") == (None, 'went on')
    [record] = box.take_records()
    assert (record.error, record.hidden, record.log) == ('LookupError: a', True, ('looking for a',))


async def test_an_error_of_a_tool_can_be_caught_by_its_class() -> None:
    @tool
    def parse(text: str) -> int:
        return int(text)

    code = "try:\n    parse('x')\nexcept ValueError as error:\n    said = str(error)\nsaid"
    assert 'invalid literal' in await run(Toolbox([parse]), code)


async def test_a10_a_wrong_result_is_named_as_the_tools_error() -> None:
    def count() -> object:
        return 'three'

    count.__annotations__['return'] = int
    said = await error(Toolbox([count]), 'count()')
    assert said.startswith('ToolError: count returned another type than it declares')


async def test_a14_a_tool_of_the_model_is_no_name_in_the_code() -> None:
    @tool(side='model')
    def think() -> None: ...

    assert 'NameError' in await error(Toolbox([think]), 'think()')


async def test_a22_tools_are_switched_while_the_sandbox_lives(calls: Calls) -> None:
    box = Toolbox([Toolset('numbers', [calls.f], enabled=False)])
    async with sandbox(box) as made:
        refused = await made.run('f(1)')
        box.enable('numbers')
        allowed = await made.run('f(1)')
    assert str(refused.error) == 'ToolError: f was not called: it is disabled'
    assert allowed.value == [1, True, 'x']


async def test_d14_a_denying_gate_stops_write_file_and_the_code_sees_the_reason(tmp_path: Path) -> None:
    async def gate(call: GateCall) -> Deny | None:
        await asyncio.sleep(0)
        return Deny('read only') if call.tool == 'write_file' else None

    box = Toolbox([Files(tmp_path)], gates=[gate])
    assert await error(box, "write_file('x', 'y')") == 'ToolError: write_file was not called: read only'
    assert list(tmp_path.iterdir()) == []


async def test_d14_a_changed_result_is_what_the_code_gets(calls: Calls) -> None:
    def mask(call: GateCall, result: object) -> ChangeResult:
        return ChangeResult('masked')

    assert await run(Toolbox([calls.f, calls.search], gates=[mask]), "[f(1), await search('q')]") == ['masked'] * 2


@pytest.mark.parametrize('answer', [True, False])
async def test_d15_a_person_decides_while_the_code_waits(tmp_path: Path, answer: bool) -> None:
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        await asyncio.sleep(0.01)
        return answer

    (tmp_path / 'x.txt').write_text('old\n')
    box = Toolbox([Files(tmp_path, needs_approval=True)], approve=approve)
    async with sandbox(box, workspace=tmp_path) as made:
        cell = await made.run("update_file('x.txt', 'old', 'new')\nopen('/workspace/x.txt').read()")
    assert (tmp_path / 'x.txt').read_text() == ('new\n' if answer else 'old\n')
    assert cell.ok is answer
    assert asked[0].diff == '--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n-old\n+new\n'


async def test_a_cell_that_ends_while_a_person_thinks_leaves_nothing_behind() -> None:
    asked = asyncio.Event()

    async def approve(request: ApprovalRequest) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    @tool(needs_approval=True)
    def act() -> None:
        pytest.fail('it was called')

    box = Toolbox([act], approve=approve)
    async with sandbox(box) as made:
        task = asyncio.create_task(made.run('act()'))
        await asked.wait()
        box.cancel()
        cell = await task
        after = await made.run('1 + 1')
    assert 'cancelled' in str(cell.error)
    assert after.value == 2


async def test_a20_ask_and_notify_work_from_code() -> None:
    events: list[ToolEvent] = []
    box = Toolbox([people_toolset(lambda question: question.upper())], emit=events.append)
    assert await run(box, "notify_user('starting')\nask_user('which?')") == 'WHICH?'
    told = [(event.kind, event.text) for event in events if event.kind in {'notice', 'question'}]
    assert told == [('notice', 'starting'), ('question', 'which?')]


async def test_a20_a_question_without_an_answer_is_reported_even_if_the_code_catches_it() -> None:
    box = Toolbox([people_toolset()])
    await run(box, "try:\n    ask_user('which?')\nexcept Exception:\n    pass")
    assert box.take_question() == 'which?'


async def test_h6_the_todo_list_works_from_code() -> None:
    code = "todo_write([{'id': 1, 'text': 'plan', 'status': 'in_progress'}])\ntodo_read()"
    assert await run(Toolbox([todo_toolset()]), code) == [{'id': 1, 'text': 'plan', 'status': 'in_progress'}]


async def test_events_of_plain_tools_come_on_the_event_loop_before_the_cell_is_over(calls: Calls) -> None:
    events: list[tuple[str, int]] = []
    box = Toolbox([calls.f], emit=lambda event: events.append((event.kind, threading.get_ident())))
    await run(box, 'f(1)')
    here = threading.get_ident()
    assert events == [('tool_called', here), ('tool_returned', here)]


async def test_a_sandbox_takes_tools_without_a_toolbox(calls: Calls) -> None:
    @tool(needs_approval=True)
    def risky() -> None:
        pytest.fail('it was called')

    async with await Sandbox.create(tools=[calls.f, calls.search, risky]) as made:
        assert (await made.run("[f(0), (await search('q'))[0]]")).value == [[0, True, 'x'], {'url': 'q', 'size': 's'}]
        assert str((await made.run("f('x')")).error).startswith('ToolError: f was not called: ')
        assert 'it needs approval' in str((await made.run('risky()')).error)
