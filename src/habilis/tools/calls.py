"""Makes the calls of a toolbox, for code and model alike:

enabled? → validate arguments → gates → approval, if required → tool → validate result → result gates → record
"""

import asyncio
import functools
import inspect
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Never, Protocol

from habilis.core.errors import ToolArgumentsError, ToolDenied, ToolResultError
from habilis.core.integers import error_text
from habilis.core.previews import RESULT_LENGTH, shorten
from habilis.sandbox import Sandbox
from habilis.sandbox.contract import CallDecision, Display, Side, ToolCall
from habilis.tools import attempts
from habilis.tools.argument_copies import copy_arguments
from habilis.tools.context import Context, takes_context
from habilis.tools.contract import (
    PREVIEW,
    ApprovalRequest,
    Approve,
    Ask,
    CallJournal,
    Gate,
    GateCall,
    NeedsAnswer,
    ResultGate,
    ToolOptions,
)
from habilis.tools.events import Emit, QuestionEvent, ToolCalled, ToolReturned
from habilis.tools.gates import Approvals, Gates
from habilis.tools.grants import Grants
from habilis.tools.logs import LOGGER, LoopEmit, MakeEvent, ToolChannel, close_channel, open_channel
from habilis.tools.permits import Permit, check_open
from habilis.tools.plain_data import NotConvertible, to_plain

Bind = Callable[[], inspect.BoundArguments]
"""Validates the arguments of a call."""

SETTLE_TURNS = 20
"""Rounds of the event loop in which a cancelled call ends."""

MAX_RECORDS = 10_000
"""Maximum number of records that are kept until `take_records`; the oldest are dropped first."""


class CallableTool(Protocol):
    """What a call needs of a tool; `Tool` has it."""

    name: str
    options: ToolOptions
    description: str
    is_async: bool
    uses_guest: bool
    approval_question: str

    @property
    def can_run_here(self) -> bool: ...
    @property
    def positional(self) -> tuple[str, ...]: ...
    @property
    def signature(self) -> str: ...
    def validate(self, args: Sequence[object], kwargs: Mapping[str, object]) -> inspect.BoundArguments: ...
    def validate_named(self, arguments: Mapping[str, object]) -> inspect.BoundArguments: ...
    def changed(self, before: inspect.BoundArguments, changes: Mapping[str, object]) -> inspect.BoundArguments: ...
    def complete(self, bound: inspect.BoundArguments) -> dict[str, object]: ...
    def labelled(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]: ...
    def run(
        self, bound: inspect.BoundArguments, *, here: bool = False, context: Context[object] | None = None
    ) -> Awaitable[object]: ...


@dataclass(frozen=True, kw_only=True)
class PreparedCall:
    """A call whose arguments have been validated."""

    tool: CallableTool
    bind: Bind
    written: Mapping[str, object]


@dataclass(kw_only=True)
class _Call:
    """A call that is being made."""

    id: int
    tool: CallableTool
    side: Side
    arguments: Mapping[str, object]
    """For the record; the tool has a copy of its own."""

    decision: CallDecision = 'allowed'
    shown: str | None = None
    """The diff that a person has approved."""

    ended: Callable[[ToolCall], object] | None = None
    """Called with its record."""

    context: Context[object] | None = None
    started: float = field(default_factory=time.monotonic)

    def as_gate_call(self) -> GateCall:
        """The call as gates and events have it."""
        options = self.tool.options
        return GateCall(
            id=self.id,
            tool=self.tool.name,
            arguments=self.arguments,
            side=self.side,
            read_only=options.read_only,
            destructive=options.destructive,
        )


class Calls:
    """Makes the calls of a toolbox and keeps their records. Thread-safe."""

    def __init__(
        self,
        enabled: Container[str],
        *,
        gates: 'Iterable[Gate | ResultGate]' = (),
        approve: Approve | None = None,
        emit: Emit | None = None,
        journal: CallJournal | None = None,
        context: Context[object] | None = None,
        sandbox: Sandbox | None = None,
        grants: Grants | None = None,
    ) -> None:
        self._enabled = enabled
        self.sandbox = sandbox
        self.context = context
        self.emit = LoopEmit(emit)
        self._journal = journal
        self._gates = Gates(gates, self.emit)
        self._approvals = Approvals(approve, self.emit, journal, grants)
        self._code = ''
        self._last = 0
        self._counting = threading.Lock()
        self._records: deque[ToolCall] = deque(maxlen=MAX_RECORDS)
        self._question: str | None = None
        self._memory: dict[object, object] = {}
        self._displays: list[Display] = []
        self._running: set[int] = set()
        self._permit: Permit | None = None

    def open(self, code: str = '') -> None:
        """Start a cell: its calls begin only while the task of its run is not cancelled."""
        self._permit, self._code = Permit(), code
        self._approvals.grants.start_cell()

    def end(self) -> None:
        """End the cell: none of its calls begins any more. Calls of the host do."""
        self.close()
        self._permit = None

    def close(self) -> None:
        """Let no further call of the cell begin. Thread-safe."""
        if self._permit is not None:
            self._permit.close()

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Emit events on this event loop from now on."""
        if loop is not self.emit.loop:
            self.emit.loop = loop
            self._approvals.renew()

    def skip_ids(self, number: int) -> None:
        """Continue the ids after this one, the last of an earlier process."""
        self._last = max(self._last, number)

    def never_waits(self, tool: CallableTool) -> bool:
        """Whether a call needs no event loop, so that it can be made on any thread."""
        alone = not self._gates and self._journal is None
        return tool.can_run_here and alone and not tool.options.needs_approval

    async def settle(self) -> None:
        """Wait until calls that were cancelled have their records, unless they go on in spite of that."""
        for _ in range(SETTLE_TURNS):
            if not self._running:
                return
            await asyncio.sleep(0)

    def take_records(self) -> list[ToolCall]:
        """The calls that have ended since the last time, in the order in which they started."""
        return sorted((self._records.popleft() for _ in range(len(self._records))), key=lambda record: record.id)

    def take_question(self) -> str | None:
        """The question of the first `NeedsAnswer` since the last time."""
        question, self._question = self._question, None
        return question

    def take_displays(self) -> list[Display]:
        """What the tools have displayed since the last time."""
        return [self._displays.pop(0) for _ in range(len(self._displays))]

    async def make(
        self,
        tool: CallableTool,
        bind: Bind,
        written: Mapping[str, object],
        *,
        side: Side = 'code',
        here: bool = False,
        ended: Callable[[ToolCall], object] | None = None,
    ) -> object:
        """Make a call. `here`: a plain function runs on this thread."""
        call = _Call(id=self._next_id(), tool=tool, side=side, arguments=written, ended=ended)
        self._running.add(call.id)
        channel = self._channel(lambda make: self.emit(make(call.as_gate_call())))
        call.context = None if self.context is None else self.context.of_call(channel)
        if self.emit.is_heard:
            self.emit(ToolCalled(call=call.as_gate_call()))
        token, permit = open_channel(channel), Permit(self._permit)
        try:
            with permit.entered():
                bound = await self._admitted(call, bind)
                check_open()
                if self._journal is None or tool.options.in_memory:
                    result = await self._run(call, bound, here)
                else:
                    run, once = functools.partial(self._run, call, bound, here), not tool.options.idempotent
                    result = await self._journal.around_call(call.as_gate_call(), once, run)
        except Exception as error:
            permit.release()
            return self._failed(call, channel, error)
        except BaseException as error:  # cancelled
            permit.close()
            self._record(call, channel, error=error)
            raise
        finally:
            close_channel(token)
            call.context = None  # its channel refers to the call
        permit.release()
        self._record(call, channel, result=result)
        return result

    async def repeat(self, tool: CallableTool, arguments: Mapping[str, object]) -> None:
        """Repeat a call of an earlier process, for its effects in memory. No record, no events."""
        token = open_channel(channel := self._channel(lambda make: None))
        context = None if self.context is None else self.context.of_call(channel)
        try:
            await tool.run(tool.validate_named(arguments), context=context)
        finally:
            close_channel(token)

    def _channel(self, emit: Callable[[MakeEvent], None]) -> ToolChannel:
        return ToolChannel(emit=emit, memory=self._memory, displays=self._displays, sandbox=self.sandbox)

    def _next_id(self) -> int:
        with self._counting:
            self._last += 1
            return self._last

    async def _run(self, call: _Call, bound: inspect.BoundArguments, here: bool) -> object:
        if call.shown is not None and call.shown != await _preview(call, bound):
            reason = 'what it would change is no longer what the user was shown and approved; check and call again'
            msg = f'{call.tool.name} was not called: {reason}'
            raise ToolDenied(msg)
        result = await call.tool.run(bound, here=here, context=call.context)
        return await self._pass_result_gates(call, result) if self._gates else result

    async def _admitted(self, call: _Call, bind: Bind) -> inspect.BoundArguments:
        """The arguments to call the tool with. Raises if the call must not be made."""
        tool = call.tool
        call.decision = 'refused'
        if tool.name not in self._enabled:
            msg = f'{tool.name} was not called: it is disabled'
            return await self._refuse(call, ToolDenied(msg))
        call.decision = 'invalid'
        try:
            bound = bind()
        except ToolArgumentsError as error:
            return await self._refuse(call, error)
        call.arguments = copy_arguments(tool.complete(bound))
        call.decision, asks = 'allowed', list[Ask]()
        if self._gates:
            bound, asks = await self._pass_gates(call, bound)
        if tool.options.needs_approval:
            asks.append(Ask(tool.approval_question))
        if asks:
            request = await self._request(call, asks, bound)
            call.decision = 'refused'
            await self._approvals.require(
                request, call.as_gate_call(), may_have_others=tool.is_async, anew=bool(tool.approval_question)
            )
            call.decision, call.shown = 'approved', request.diff
        return bound

    async def _pass_gates(self, call: _Call, bound: inspect.BoundArguments) -> tuple[inspect.BoundArguments, list[Ask]]:
        """The arguments that the gates let pass, and what they ask a person."""
        call.decision, before = 'denied', bound

        def changed(changes: Mapping[str, object]) -> GateCall:
            nonlocal bound
            bound = call.tool.changed(bound, changes)
            call.arguments = copy_arguments(call.tool.complete(bound))
            return call.as_gate_call()

        try:
            asks = await self._gates.before(call.as_gate_call(), changed)
        except ToolDenied as denied:
            return await self._refuse(call, denied)
        call.decision = 'allowed' if bound is before else 'changed'
        return bound, asks

    async def _refuse(self, call: _Call, error: Exception) -> Never:
        """Record a call that is not made, so that it is refused again when the code is replayed. Raises the error."""
        if self._journal is not None and not call.tool.options.in_memory:
            await self._journal.around_call(call.as_gate_call(), False, functools.partial(_raise, error))
        raise error

    async def _request(self, call: _Call, asks: list[Ask], bound: inspect.BoundArguments) -> ApprovalRequest:
        """The question to a person. If the preview raises, so does the call."""
        questions = dict.fromkeys(ask.question for ask in asks if ask.question)
        return ApprovalRequest(
            id=call.id,
            tool=call.tool.name,
            arguments=copy_arguments(call.arguments),
            question='\n'.join(questions) or _usual_question(call.tool),
            diff=await self._preview(call, bound),
            code=self._code if call.side == 'code' else '',
        )

    async def _preview(self, call: _Call, bound: inspect.BoundArguments) -> str:
        """The diff that a person is shown. On replay the recorded one: the call may have been made already."""
        work = functools.partial(_preview, call, bound)
        if self._journal is None or call.tool.options.preview is None:
            return await work()
        preview = replace(call.as_gate_call(), tool=f'{PREVIEW}{call.tool.name}')
        return str(await self._journal.around_call(preview, False, work))

    async def _pass_result_gates(self, call: _Call, result: object) -> object:
        decision, call.decision = call.decision, 'denied'
        released = await self._gates.after(call.as_gate_call(), result)
        if released is not result:
            released = _plain(call, released)
            decision = 'changed' if decision == 'allowed' else decision
        call.decision = decision
        return released

    def _failed(self, call: _Call, channel: ToolChannel, error: Exception) -> None:
        """Record a failed call. Raises the error, unless the tool hides its errors."""
        if isinstance(error, NeedsAnswer):
            self._question = self._question or error.question
            self.emit(QuestionEvent(call=call.as_gate_call(), question=error.question))
        own = not isinstance(error, (ToolArgumentsError, ToolDenied, NeedsAnswer))
        if own:
            LOGGER.info('the tool %s failed', call.tool.name, exc_info=error)
        hidden = own and call.tool.options.on_error == 'none'
        self._record(call, channel, error=error, hidden=hidden)
        if not hidden:
            raise error

    def _record(
        self,
        call: _Call,
        channel: ToolChannel,
        *,
        result: object = None,
        error: BaseException | None = None,
        hidden: bool = False,
    ) -> None:
        record = ToolCall(
            id=call.id,
            tool=call.tool.name,
            arguments=call.arguments,
            ok=error is None,
            result=shorten(result, RESULT_LENGTH) if error is None else '',
            error=None if error is None else error_text(error),
            hidden=hidden,
            log=tuple(channel.lines),
            seconds=channel.seconds or time.monotonic() - call.started,
            decision=call.decision,
            side=call.side,
            at=channel.at,
            path=channel.path,
        )
        self._records.append(record)
        self._running.discard(call.id)
        if call.ended is not None:
            call.ended(record)
        if self.emit.is_heard:
            self.emit(ToolReturned(call=record))


def validate_now(bind: Bind) -> Bind:
    """Validate on this thread, not on the event loop, which a validator of the user could block. Its outcome, later."""
    try:
        bound = bind()
    except Exception as error:
        return functools.partial(_raise_now, error)
    return lambda: bound


def _raise_now(error: Exception) -> inspect.BoundArguments:
    raise error


async def _raise(error: Exception) -> object:
    """Raise the error, as the work of a call that was denied."""
    raise error


def _usual_question(tool: CallableTool) -> str:
    more = ' It may delete or overwrite something.' if tool.options.destructive else ''
    return f'May {tool.name} be called?{more}'


async def _preview(call: _Call, bound: inspect.BoundArguments) -> str:
    preview = call.tool.options.preview
    if preview is None:
        return ''
    context = (call.context,) if call.context is not None and takes_context(preview) else ()
    return str(await attempts.call(functools.partial(preview, *context, *bound.args, **bound.kwargs)))


def _plain(call: _Call, released: object) -> object:
    """The result of a gate as plain data. It may have another type than the result, such as `'(hidden)'`."""
    try:
        return to_plain(released)
    except NotConvertible as error:
        msg = f'a gate changed the result of {call.tool.name} to something that is not plain data: {error}'
        raise ToolResultError(msg) from None
