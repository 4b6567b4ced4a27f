"""Gates and approvals: who decides about a call, in which order, and what happens when deciding fails."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

from habilis.core.approval import Approval
from habilis.core.errors import ToolArgumentsError, ToolDefinitionError, ToolDenied, ToolResultError
from habilis.tools import (
    Allow,
    ApprovalRequest,
    Ask,
    Change,
    ChangeResult,
    Deny,
    Gate,
    GateCall,
    Toolbox,
    tool,
)
from habilis.tools.events import ApprovalAsked, ToolEvent


def added(to: str) -> str:
    """What a call would change."""
    return f'+{to}\n'


class Spy:
    """A tool that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    @tool
    def send(self, to: str, count: int = 1) -> str:
        """Send something."""
        self.calls.append((to, count))
        return f'{to}×{count}'

    @tool(needs_approval=True, preview=added)
    def risk(self, to: str) -> str:
        """Send something that needs approval."""
        self.calls.append((to, 1))
        return to


@pytest.fixture
def spy() -> Spy:
    return Spy()


# Gates ----------------------------------------------------------------------------------------------------------------


async def test_d14_a_denying_gate_stops_the_call_and_says_why(spy: Spy) -> None:
    box = Toolbox([spy.send], gates=[lambda call: Deny('not on Sundays')])
    with pytest.raises(ToolDenied, match='send was not called: not on Sundays'):
        await box.call('send', 'ann')
    assert spy.calls == []
    assert box.take_records()[0].decision == 'denied'


@pytest.mark.parametrize('decision', [None, Allow()])
async def test_a_gate_without_objection_lets_the_call_pass(spy: Spy, decision: Allow | None) -> None:
    box = Toolbox([spy.send], gates=[lambda call: decision])
    assert await box.call('send', 'ann') == 'ann×1'
    assert box.take_records()[0].decision == 'allowed'


async def test_d14_a_gate_may_change_arguments(spy: Spy) -> None:
    box = Toolbox([spy.send], gates=[lambda call: Change(arguments={'to': 'bob'})])
    assert await box.call('send', 'ann', count=3) == 'bob×3'
    [record] = box.take_records()
    assert (record.arguments, record.decision) == ({'to': 'bob', 'count': 3}, 'changed')


async def test_d14_a_gate_may_change_the_result(spy: Spy) -> None:
    async def hide(call: GateCall, result: object) -> ChangeResult:
        return ChangeResult(f'{call.tool}: {len(str(result))} letters')

    box = Toolbox([spy.send], gates=[hide])
    assert await box.call('send', 'ann') == 'send: 5 letters'
    assert spy.calls == [('ann', 1)]
    assert box.take_records()[0].decision == 'changed'


async def test_a_gate_may_withhold_the_result(spy: Spy) -> None:
    def withhold(call: GateCall, result: object) -> Deny:
        return Deny('secret')

    box = Toolbox([spy.send], gates=[withhold])
    with pytest.raises(ToolDenied, match='send was called, but its result is withheld: secret'):
        await box.call('send', 'ann')
    assert spy.calls == [('ann', 1)]


async def test_gates_see_validated_arguments_with_defaults(spy: Spy) -> None:
    seen: list[GateCall] = []
    box = Toolbox([spy.send], gates=[seen.append])
    await box.call('send', 'ann')
    assert seen == [GateCall(id=1, tool='send', arguments={'to': 'ann', 'count': 1})]
    with pytest.raises(ToolArgumentsError):
        await box.call('send', 5)
    assert len(seen) == 1


async def test_gates_are_called_in_order_before_and_in_reverse_order_after(spy: Spy) -> None:
    heard: list[str] = []

    def before(name: str) -> Callable[[GateCall], None]:
        def gate(call: GateCall) -> None:
            heard.append(f'{name} before {call.arguments["to"]}')

        return gate

    def after(name: str) -> Callable[[GateCall, object], ChangeResult]:
        def gate(call: GateCall, result: object) -> ChangeResult:
            heard.append(f'{name} after {result}')
            return ChangeResult(f'{result}{name}')

        return gate

    async def change(call: GateCall) -> Change:
        await asyncio.sleep(0)
        return Change(arguments={'to': 'bob'})

    box = Toolbox([spy.send], gates=[before('a'), after('a'), change, before('b'), after('b')])
    assert await box.call('send', 'ann') == 'bob×1ba'
    assert heard == ['a before ann', 'b before bob', 'b after bob×1', 'a after bob×1b']


async def test_the_first_denial_wins(spy: Spy) -> None:
    heard: list[GateCall] = []
    box = Toolbox([spy.send], gates=[lambda call: Deny('first'), lambda call: Deny('second'), heard.append])
    with pytest.raises(ToolDenied, match='first'):
        await box.call('send', 'ann')
    assert heard == []


@pytest.mark.parametrize('changes', [{'to': 5}, {'nobody': 1}])
async def test_changed_arguments_are_checked_like_any(spy: Spy, changes: dict[str, object]) -> None:
    box = Toolbox([spy.send], gates=[lambda call: Change(arguments=changes)])
    with pytest.raises(ToolDenied, match='a gate changed the arguments to invalid ones'):
        await box.call('send', 'ann')
    assert spy.calls == []


def _raise(*_: object) -> Any:
    raise ZeroDivisionError('oops')


def _raise_after(call: GateCall, result: object) -> Any:
    raise ZeroDivisionError('oops')


async def _raise_later(call: GateCall) -> Any:
    raise ZeroDivisionError('oops')


NOT_CALLED = 'send was not called'
WITHHELD = 'send was called, but its result is withheld'


@pytest.mark.parametrize(('gate', 'said'), [(_raise, NOT_CALLED), (_raise_after, WITHHELD), (_raise_later, NOT_CALLED)])
async def test_a_gate_that_raises_denies_and_is_reported(
    spy: Spy, gate: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[ToolEvent] = []
    box = Toolbox([spy.send], gates=[gate], emit=events.append)
    with pytest.raises(ToolDenied, match=rf'{said}: a gate failed \({gate.__name__}\)'):
        await box.call('send', 'ann')
    [failed] = [event for event in events if event.kind == 'hook_failed']
    assert said in failed.text
    assert 'ZeroDivisionError: oops' in failed.text
    assert 'ZeroDivisionError' in caplog.text


async def test_a_result_gate_that_says_no_decision_withholds_the_result(spy: Spy) -> None:
    def nonsense(call: GateCall, result: object) -> Any:
        return 'yes'

    with pytest.raises(ToolDenied, match=WITHHELD):
        await Toolbox([spy.send], gates=[nonsense]).call('send', 'ann')
    assert spy.calls == [('ann', 1)]


@pytest.mark.parametrize('said', [True, False, 'yes', Deny, ChangeResult(1)])
async def test_a_gate_that_says_no_decision_denies(spy: Spy, said: Any) -> None:
    box = Toolbox([spy.send], gates=[lambda call: said])
    with pytest.raises(ToolDenied, match='a gate failed'):
        await box.call('send', 'ann')
    assert spy.calls == []


def _takes_nothing() -> None: ...


def _takes_three(call: GateCall, result: object, more: object) -> None: ...


def _takes_a_result_or_not(call: GateCall, result: object = None) -> None: ...


def _takes_an_option(call: GateCall, *, limit: int = 1) -> None: ...


def test_a_gate_that_may_be_for_calls_or_for_results_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match='its second parameter has a default'):
        Toolbox([], gates=[_takes_a_result_or_not])
    Toolbox([], gates=[_takes_an_option, _raise])


@pytest.mark.parametrize('gate', [_takes_nothing, _takes_three, 5])
def test_what_cannot_be_a_gate_is_refused(gate: Any) -> None:
    with pytest.raises(ToolDefinitionError, match='is not a gate'):
        Toolbox([], gates=[gate])


async def test_a_result_changed_to_something_that_is_not_plain_is_an_error(spy: Spy) -> None:
    def change(call: GateCall, result: object) -> ChangeResult:
        return ChangeResult(object())

    with pytest.raises(ToolResultError, match='a gate changed the result of send'):
        await Toolbox([spy.send], gates=[change]).call('send', 'ann')


async def test_a_gate_may_hide_a_result_of_any_type() -> None:
    @tool
    def figures() -> list[int]:
        """Some figures."""
        return [1, 2]

    def hide(call: GateCall, result: object) -> ChangeResult:
        return ChangeResult('(hidden)')

    assert await Toolbox([figures], gates=[hide]).call('figures') == '(hidden)'


async def test_part_of_a_result_can_be_changed() -> None:
    @dataclass
    class Person:
        name: str
        phone: str

    @tool
    def who() -> list[Person]:
        """Look somebody up."""
        return [Person('Ana', '123')]

    def mask(call: GateCall, result: Any) -> ChangeResult:
        return ChangeResult([{**person, 'phone': '***'} for person in result])

    assert await Toolbox([who], gates=[mask]).call('who') == [{'name': 'Ana', 'phone': '***'}]


# What others see of a call --------------------------------------------------------------------------------------------


async def test_a_gate_that_edits_its_copy_of_the_arguments_changes_nothing() -> None:
    got: list[object] = []
    seen: list[dict[str, object]] = []

    @tool(needs_approval=True)
    def send(to: str, files: list[str], **more: str) -> None:
        """Send something."""
        got.extend((to, files, more))

    def mask(call: GateCall) -> None:
        call.arguments['to'] = 'masked'  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
        cast('list[str]', call.arguments['files']).clear()
        cast('dict[str, str]', call.arguments['more'])['bcc'] = 'masked'

    def look(call: GateCall) -> None:
        seen.append({**call.arguments})

    def approve(request: ApprovalRequest) -> bool:
        seen.append({**request.arguments, 'files': [*cast('list[str]', request.arguments['files'])]})
        cast('list[str]', request.arguments['files']).clear()
        return True

    box = Toolbox([send], gates=[mask, look], approve=approve)
    for _ in range(2):
        await box.call('send', 'eve', ['a.txt'])
    real: dict[str, object] = {'to': 'eve', 'files': ['a.txt'], 'more': {}}
    assert got == [*real.values()] * 2
    assert [record.arguments for record in box.take_records()] == [real, real]
    assert seen == [real] * 4


async def test_a_tool_that_edits_its_arguments_leaves_the_record_as_it_got_them() -> None:
    @tool
    def grow(xs: list[int], box: dict[str, list[int]], by: Any = None) -> int:
        """Change what it was given."""
        xs.append(9)
        box['a'].clear()
        return len(xs)

    lock = threading.Lock()  # which cannot be copied
    box = Toolbox([grow])
    assert await box.call('grow', [1], {'a': [1]}, lock) == 2
    assert box.take_records()[0].arguments == {'xs': [1], 'box': {'a': [1]}, 'by': lock}


async def test_a_gate_decides_about_calls_of_the_model_too() -> None:
    @tool(side='model')
    def look() -> str:
        return 'seen'

    sides: list[str] = []

    def gate(call: GateCall) -> Deny:
        sides.append(call.side)
        return Deny('no')

    with pytest.raises(ToolDenied):
        await Toolbox([look], gates=[gate]).call_for_model('look', {})
    assert sides == ['model']


# Approvals ------------------------------------------------------------------------------------------------------------


async def test_a_call_that_needs_approval_happens_after_a_yes(spy: Spy) -> None:
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> bool:
        assert spy.calls == []
        asked.append(request)
        return True

    events: list[ToolEvent] = []
    box = Toolbox([spy.risk], approve=approve, emit=events.append)
    assert await box.call('risk', 'ann') == 'ann'
    assert asked == [
        ApprovalRequest(id=1, tool='risk', arguments={'to': 'ann'}, question='May risk be called?', diff='+ann\n')
    ]
    assert box.take_records()[0].decision == 'approved'
    assert [event.kind for event in events] == ['tool_called', 'approval_asked', 'approval_answered', 'tool_returned']
    assert isinstance(events[1], ApprovalAsked)
    assert (events[1].request, events[2].text) == (asked[0], 'yes')


async def test_a_no_may_have_a_reason(spy: Spy) -> None:
    box = Toolbox([spy.risk], approve=lambda request: Approval(approved=False, reason='not on a Sunday'))
    with pytest.raises(ToolDenied, match='risk was not called: the user said no: not on a Sunday'):
        await box.call('risk', 'ann')
    assert box.take_records()[0].decision == 'refused'


@pytest.mark.parametrize('answer', [False, None, 'no', 'yes', 1])
async def test_only_true_is_a_yes(spy: Spy, answer: Any) -> None:
    box = Toolbox([spy.risk], approve=lambda request: answer)
    with pytest.raises(ToolDenied, match='risk was not called: the user said no'):
        await box.call('risk', 'ann')
    assert spy.calls == []
    assert box.take_records()[0].decision == 'refused'


async def test_without_anybody_to_ask_the_call_is_denied(spy: Spy) -> None:
    with pytest.raises(ToolDenied, match='needs approval, and there is no one to ask'):
        await Toolbox([spy.risk]).call('risk', 'ann')
    assert spy.calls == []


async def test_an_approver_that_raises_denies(spy: Spy, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ToolDenied, match='asking for approval failed'):
        await Toolbox([spy.risk], approve=_raise).call('risk', 'ann')
    assert spy.calls == []
    assert 'ZeroDivisionError' in caplog.text


async def test_an_approver_that_blocks_does_not_block_the_event_loop(spy: Spy) -> None:
    answered = threading.Event()

    def approve(request: ApprovalRequest) -> bool:
        return answered.wait(30)

    async def answer() -> None:
        answered.set()

    result, _ = await asyncio.gather(Toolbox([spy.risk], approve=approve).call('risk', 'ann'), answer())
    assert result == 'ann'


async def test_questions_of_gates_are_put_together_after_all_gates(spy: Spy) -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    gates: list[Gate] = [
        lambda call: Ask('To a stranger?'),
        lambda call: Change(arguments={'to': 'bob'}),
        lambda call: Ask('At night?'),
    ]
    assert await Toolbox([spy.send], gates=gates, approve=approve).call('send', 'ann') == 'bob×1'
    [request] = asked
    assert (request.question, request.arguments['to']) == ('To a stranger?\nAt night?', 'bob')


async def test_no_approval_is_asked_for_a_call_that_a_later_gate_denies(spy: Spy) -> None:
    box = Toolbox([spy.send], gates=[lambda call: Ask('?'), lambda call: Deny('no')], approve=_raise)
    with pytest.raises(ToolDenied, match='send was not called: no'):
        await box.call('send', 'ann')


async def test_one_question_is_asked_at_a_time(spy: Spy) -> None:
    open_questions = 0
    most = 0

    async def approve(request: ApprovalRequest) -> bool:
        nonlocal open_questions, most
        open_questions += 1
        most = max(most, open_questions)
        await asyncio.sleep(0.001)
        open_questions -= 1
        return True

    box = Toolbox([spy.risk], approve=approve)
    await asyncio.gather(*(box.call('risk', name) for name in 'abc'))
    assert (most, len(spy.calls)) == (1, 3)


async def test_a_preview_that_fails_ends_the_call_before_anybody_is_asked() -> None:
    def preview() -> str:
        raise FileNotFoundError('there is no such file')

    @tool(needs_approval=True, preview=preview)
    def change() -> None:
        pytest.fail('it was called')

    box = Toolbox([change], approve=_raise)
    with pytest.raises(FileNotFoundError, match='no such file'):
        await box.call('change')
    assert box.take_records()[0].decision == 'allowed', 'no person has refused it'
