"""A toolbox with a journal: what is asked of it, in which order, and what never is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from habilis.core.errors import JournalError, StoreUnavailable, ToolArgumentsError, ToolDenied
from habilis.sandbox import Sandbox
from habilis.sandbox.contract import ToolCall
from habilis.tools import (
    Approval,
    ApprovalRequest,
    Ask,
    Change,
    ChangeResult,
    Deny,
    GateCall,
    Toolbox,
    tool,
)


class Kept:
    """A journal in a dict."""

    def __init__(self) -> None:
        self.results: dict[str, object] = {}
        self.once: list[tuple[str, bool]] = []
        self.answers: dict[str, Approval] = {}
        self.people: list[bool] = []

    async def around_call(self, call: GateCall, once: bool, work: Callable[[], Awaitable[object]]) -> object:
        """From the dict, or into it."""
        self.once.append((call.tool, once))
        key = f'{call.tool} {dict(call.arguments)}'
        if key not in self.results:
            try:
                self.results[key] = await work()
            except Exception as error:
                self.results[key] = error
        kept = self.results[key]
        if isinstance(kept, Exception):
            raise kept
        return kept

    async def approve(self, request: ApprovalRequest, person: Callable[[], Awaitable[Approval]] | None) -> Approval:
        """As answered before, or now."""
        self.people.append(person is not None)
        if request.tool not in self.answers:
            if person is None:
                msg = 'nobody is there'
                raise StoreUnavailable(msg)
            self.answers[request.tool] = await person()
        return self.answers[request.tool]


def counted() -> tuple[list[object], list[Any]]:
    made: list[object] = []

    @tool
    def add(a: int, b: int = 1) -> int:
        """Add."""
        made.append(('add', a, b))
        return a + b

    @tool(idempotent=False)
    async def send(to: str) -> str:
        """Send."""
        made.append(('send', to))
        return to.upper()

    @tool(in_memory=True)
    def keep(n: int) -> int:
        """Keep."""
        made.append(('keep', n))
        return n

    @tool
    def broken() -> None:
        """Fail."""
        made.append('broken')
        raise LookupError('gone')

    return made, [add, send, keep, broken]


async def test_a_call_that_is_kept_is_not_made_again() -> None:
    made, tools = counted()
    kept = Kept()
    for _ in range(2):
        box = Toolbox(tools, journal=kept)
        assert await box.call('add', 1) == 2
        assert await box.call('send', 'ann') == 'ANN'
        with pytest.raises(LookupError, match='gone'):
            await box.call('broken')
    assert made == [('add', 1, 1), ('send', 'ann'), 'broken']
    assert kept.once == [('add', False), ('send', True), ('broken', False)] * 2


async def test_the_journal_gets_arguments_as_the_gates_want_them_and_results_as_they_are_released() -> None:
    made, tools = counted()
    kept = Kept()

    def other(call: GateCall) -> Change | None:
        return Change(arguments={'a': 5}) if call.tool == 'add' else None

    def less(call: GateCall, result: object) -> ChangeResult:
        return ChangeResult([call.tool, result])

    box = Toolbox(tools, gates=[other, less], journal=kept)
    assert await box.call('add', 1) == ['add', 6]
    assert kept.results == {"add {'a': 5, 'b': 1}": ['add', 6]}
    assert made == [('add', 5, 1)]


async def test_a_call_that_is_denied_invalid_or_disabled_is_recorded_and_not_made() -> None:
    made, tools = counted()
    kept = Kept()
    says: list[Deny | None] = [Deny('no'), None]
    box = Toolbox(tools, gates=[lambda call: says.pop(0)], journal=kept)
    for _ in range(2):
        with pytest.raises(ToolDenied, match='no'):
            await box.call('send', 'ann')
    assert kept.once == [('send', False), ('send', True)], 'nothing has begun that must not be begun twice'
    with pytest.raises(ToolArgumentsError, match='invalid arguments'):
        await box.call('add', 'x')
    box.disable('add')
    with pytest.raises(ToolDenied, match='disabled'):
        await box.call('add', 1)
    assert made == []
    assert list(kept.results) == ["send {'to': 'ann'}", "add {'a': 'x'}", "add {'a': 1}"]
    assert kept.once[2:] == [('add', False)] * 2


async def test_memory_is_not_kept_but_brought_back() -> None:
    made, tools = counted()
    kept = Kept()
    box = Toolbox(tools, journal=kept)
    assert [await box.call('keep', 1), await box.call('keep', 1)] == [1, 1]
    assert kept.once == []
    [first, _] = box.take_records()
    other = Toolbox(tools, journal=kept)
    await other.remember(first)
    await other.remember(ToolCall(id=7, tool='keep', arguments={'n': 2}, ok=False))
    await other.remember(ToolCall(id=8, tool='add', arguments={'a': 2}, ok=True))
    await other.remember(ToolCall(id=9, tool='unknown', arguments={}, ok=True))
    await other.remember(ToolCall(id=9, tool='keep', arguments={'nonsense': 2}, ok=True))
    assert made == [('keep', 1)] * 3
    await other.call('add', 1)
    assert [record.id for record in other.take_records()] == [10], 'the numbers go on'


async def test_people_are_asked_through_the_journal() -> None:
    made, tools = counted()
    kept = Kept()
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.question)
        return True

    for _ in range(2):
        box = Toolbox(tools, gates=[lambda call: Ask('May I?')], approve=approve, journal=kept)
        assert await box.call('add', 1) == 2
    assert (asked, kept.people, made) == (['May I?'], [True, True], [('add', 1, 1)])


async def test_a_journal_that_is_lost_is_no_denial() -> None:
    _, tools = counted()
    box = Toolbox(tools, gates=[lambda call: Ask()], journal=Kept())
    with pytest.raises(JournalError, match='nobody is there'):
        await box.call('add', 1)


async def test_without_a_person_several_may_be_asked_at_the_same_time() -> None:
    _, tools = counted()
    waiting: list[str] = []
    both = asyncio.Event()

    class Patient(Kept):
        async def approve(self, request: ApprovalRequest, person: Callable[[], Awaitable[Approval]] | None) -> Approval:
            waiting.append(request.tool)
            if len(waiting) == 2:
                both.set()
            await both.wait()
            return Approval()

    box = Toolbox(tools, gates=[lambda call: Ask()], journal=Patient())
    assert await asyncio.gather(box.call('add', 1), box.call('send', 'a')) == [2, 'A']


async def test_calls_of_code_go_through_the_journal_too() -> None:
    made, tools = counted()
    kept = Kept()
    for _ in range(2):
        box = Toolbox(tools, journal=kept)
        async with await Sandbox.create('wasm', tools=box.functions()) as sandbox:
            cell = await sandbox.run("add(1), await send('x'), keep(3)")
        assert cell.value == (2, 'X', 3)
    assert made == [('add', 1, 1), ('send', 'x'), ('keep', 3), ('keep', 3)]
