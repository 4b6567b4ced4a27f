"""Decisions about a call: by gates, then by a person if a gate or the tool asks for it.

Gates see a call in the order of the list, and its result in the reverse order. The first `Deny` wins. Arguments of a
`Change` are validated, and later gates see them. All `Ask` decisions become one question to a person after the last
gate, so nobody is asked about a call that a later gate denies or changes. A gate that raises, or returns something else
than a decision, denies.
"""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from types import FunctionType, MethodType
from typing import cast

from habilis.core.approval import Approval
from habilis.core.errors import JournalError, ToolArgumentsError, ToolDefinitionError, ToolDenied
from habilis.core.integers import error_text
from habilis.sandbox.host.deadline import deadline_paused
from habilis.tools import attempts
from habilis.tools.argument_copies import copy_arguments
from habilis.tools.contract import (
    Allow,
    ApprovalRequest,
    Approve,
    Ask,
    CallJournal,
    Change,
    ChangeResult,
    Deny,
    Gate,
    GateCall,
    ResultGate,
)
from habilis.tools.events import ApprovalAnswered, ApprovalAsked, ApprovalUsed, Emit, HookFailed
from habilis.tools.grants import Grants
from habilis.tools.logs import LOGGER
from habilis.tools.permits import check_open

SETTLE_SECONDS = 0.05
"""Time in which concurrent calls of the same cell may still start, to be shown in one question."""

Changed = Callable[[Mapping[str, object]], GateCall]
"""Returns the call with other arguments, validated."""

Message = Callable[[GateCall, str], str]
"""Formats the error message of a denied call from the reason."""


class Gates:
    """The gates of a toolbox."""

    def __init__(self, gates: 'Iterable[Gate | ResultGate]', emit: Emit) -> None:
        self._emit = emit
        self._before: list[Gate] = []
        self._after: list[ResultGate] = []
        for gate in gates:
            counts = _argument_counts(gate)
            if counts == {1, 2}:
                msg = (
                    f'{_name(gate)} is not a gate: its second parameter has a default, so it could be for calls or for '
                    'results; remove the default if it is the result, else put `*,` before it'
                )
                raise ToolDefinitionError(msg)
            if 1 in counts:
                self._before.append(cast('Gate', gate))
            elif 2 in counts:
                self._after.insert(0, cast('ResultGate', gate))
            else:
                msg = f'{_name(gate)} is not a gate: it must take a call, or a call and its result'
                raise ToolDefinitionError(msg)

    def __bool__(self) -> bool:
        return bool(self._before or self._after)

    async def before(self, call: GateCall, changed: Changed) -> list[Ask]:
        """Apply the gates to a call; the questions for a person. Raises `ToolDenied`."""
        asks: list[Ask] = []
        for gate in self._before:
            decision = await self._decide(gate, call, _denied, functools.partial(gate, _copy(call)))
            if isinstance(decision, Deny):
                raise ToolDenied(_denied(call, decision.reason))
            if isinstance(decision, Change):
                call = self._change(gate, call, decision, changed)
            elif isinstance(decision, Ask):
                asks.append(decision)
            elif decision is not None and not isinstance(decision, Allow):
                raise self._not_a_decision(gate, call, _denied, decision)
        return asks

    async def after(self, call: GateCall, result: object) -> object:
        """Apply the gates to a result. Raises `ToolDenied`."""
        for gate in self._after:
            decision = await self._decide(gate, call, _withheld, functools.partial(gate, _copy(call), result))
            if isinstance(decision, Deny):
                raise ToolDenied(_withheld(call, decision.reason))
            if isinstance(decision, ChangeResult):
                result = decision.value
            elif decision is not None and not isinstance(decision, Allow):
                raise self._not_a_decision(gate, call, _withheld, decision)
        return result

    def _change(self, gate: Gate, call: GateCall, decision: Change, changed: Changed) -> GateCall:
        try:
            return changed(decision.arguments)
        except ToolArgumentsError as error:
            denied = self._failed(gate, call, _denied, error, 'a gate changed the arguments to invalid ones')
            msg = f'{denied}\n{error}'
            raise ToolDenied(msg) from None

    async def _decide(self, gate: object, call: GateCall, message: Message, ask: Callable[[], object]) -> object:
        try:
            said = ask()
            return await said if inspect.isawaitable(said) else said
        except Exception as error:
            raise self._failed(gate, call, message, error) from error

    def _not_a_decision(self, gate: object, call: GateCall, message: Message, returned: object) -> ToolDenied:
        error = TypeError(f'a gate must return a decision or None, not {type(returned).__name__}')
        return self._failed(gate, call, message, error)

    def _failed(self, gate: object, call: GateCall, message: Message, error: Exception, reason: str = '') -> ToolDenied:
        """Report a gate that failed; the error for the code."""
        denied = message(call, reason or f'a gate failed ({_name(gate)})')
        text = f'the gate {_name(gate)} failed, so {denied}: {error_text(error)}'
        LOGGER.error('%s', text, exc_info=error)
        self._emit(HookFailed(error=error, message=text))
        return ToolDenied(denied)


class Approvals:
    """Asks a person, one question at a time."""

    def __init__(
        self, approve: Approve | None, emit: Emit, journal: CallJournal | None = None, grants: Grants | None = None
    ) -> None:
        self.grants = grants or Grants()
        self._approve = approve
        self._journal = journal
        self._emit = emit
        self._turn = asyncio.Lock()
        self._waiting: dict[int, GateCall] = {}
        """Calls that wait for an answer, by their ids."""

        self._refused: dict[int, Approval] = {}
        """Those of them that were refused together with another."""

    def renew(self) -> None:
        """Use a new lock, for a new event loop."""
        self._turn = asyncio.Lock()
        self._waiting.clear()

    async def require(
        self, request: ApprovalRequest, call: GateCall, *, may_have_others: bool = False, anew: bool = False
    ) -> None:
        """Return if a person approves, or has before, unless asked `anew`. Raises `ToolDenied` otherwise.

        `may_have_others`: code may make other calls at the same time, which the person should see.
        """
        self._waiting[call.id] = call
        try:
            settled = None if anew else await self._settled(request)
            answer = settled or await self._ask_in_turn(request, may_have_others, anew)
        finally:
            self._waiting.pop(call.id, None)
            self._refused.pop(call.id, None)
        if not answer.approved:
            why = f': {answer.reason}' if answer.reason else ''
            raise ToolDenied(_denied(request, f'the user said no{why}'))

    async def _settled(self, request: ApprovalRequest) -> Approval | None:
        """The answer, if an earlier one holds. Recorded: a replay must not depend on the order of answers."""
        refusal = self._refused.get(request.id) or self.grants.refusal(request)
        if refusal is not None:
            return await self._answer(request, _said(replace(refusal, scope='once')))
        if not self.grants.take(request):
            return None
        number, calls = self.grants.approved[request.tool], self.grants.allowed(request)
        answer = await self._answer(request, _said(Approval()))
        self._emit(ApprovalUsed(request=request, number=number, calls=calls))
        return answer

    async def _ask_in_turn(self, request: ApprovalRequest, may_have_others: bool, anew: bool) -> Approval:
        if self._approve is None and self._journal is None:
            raise ToolDenied(_denied(request, 'it needs approval, and there is no one to ask'))
        # A person at a terminal is asked one question at a time; those who answer later see all questions.
        async with contextlib.nullcontext() if self._approve is None else self._turn:
            check_open()  # it may have waited for its turn
            settled = None if anew else await self._settled(request)
            if settled is not None:  # the answer before was about this call, too
                return settled
            try:
                with deadline_paused():
                    answer = await self._answer(request, self._person(request, may_have_others))
            except JournalError:
                raise
            except Exception as error:
                text = f'asking for approval of {request.tool} failed: {error_text(error)}'
                LOGGER.error('%s', text, exc_info=error)
                self._emit(HookFailed(error=error, message=text))
                raise ToolDenied(_denied(request, 'asking for approval failed')) from error
            if self._approve is None:  # somebody answered while the run waited
                self._emit(ApprovalAnswered(request=request, approval=answer))
            self.grants.add(request.tool, answer)
        return answer

    async def _answer(self, request: ApprovalRequest, person: Callable[[], Awaitable[Approval]] | None) -> Approval:
        if self._journal is not None:
            return await self._journal.approve(request, person)
        return Approval(approved=False) if person is None else await person()

    def _person(self, request: ApprovalRequest, may_have_others: bool) -> Callable[[], Awaitable[Approval]] | None:
        """Asks the person; a plain function may block, so it runs on a thread. None if nobody is there."""
        approve = self._approve

        async def ask() -> Approval:
            assert approve is not None
            whole = await self._with_others(request, may_have_others)
            self._emit(ApprovalAsked(request=whole))
            answer = Approval.of(await attempts.call(functools.partial(approve, whole)))
            if not answer.approved:
                self._refused.update(dict.fromkeys((call.id for call in whole.waiting), answer))
            self._emit(ApprovalAnswered(request=whole, approval=answer))
            return answer

        if approve is None:
            self._emit(ApprovalAsked(request=request))
        return None if approve is None else ask

    async def _with_others(self, request: ApprovalRequest, may_have_others: bool) -> ApprovalRequest:
        """The request with the calls that wait beside it: those that arrive until none does for a moment."""
        count = 0
        while may_have_others and count < len(self._waiting):
            count = len(self._waiting)
            await asyncio.sleep(SETTLE_SECONDS)
        others = tuple(call for number, call in self._waiting.items() if number != request.id)
        return replace(request, waiting=others, earlier=self.grants.approved[request.tool])


def _said(answer: Approval) -> Callable[[], Awaitable[Approval]]:
    async def say() -> Approval:
        return answer

    return say


def _argument_counts(gate: object) -> set[int]:
    """Whether it can be called with a call (1), and with a call and its result (2). `*args` are for a call alone."""
    if isinstance(gate, MethodType) and isinstance(gate.__func__, FunctionType):  # each run has one of its own
        return _method_counts(gate.__func__)
    try:
        signature = inspect.signature(cast('Callable[..., object]', gate))
    except (TypeError, ValueError):
        return set()
    first = list(signature.parameters.values())[:2]
    has_rest = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in first)
    return {count for count in ((1,) if has_rest else (1, 2)) if _takes(signature, count)}


@functools.lru_cache
def _method_counts(function: FunctionType) -> set[int]:
    return _argument_counts(functools.partial(function, None))


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def _name(gate: object) -> str:
    return str(getattr(gate, '__name__', type(gate).__name__))


def _denied(call: GateCall | ApprovalRequest, reason: str) -> str:
    return f'{call.tool} was not called: {reason}'


def _withheld(call: GateCall, reason: str) -> str:
    return f'{call.tool} was called, but its result is withheld: {reason}'


def _copy(call: GateCall) -> GateCall:
    """A copy of the call for one gate, which may change the arguments of its copy."""
    return replace(call, arguments=copy_arguments(call.arguments))
