"""Tool calls of one solution, answered again in another: a second solution must not repeat an effect."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar

from habilis.agent.durable.recorder import ToolResult, find_call
from habilis.core.approval import Approval
from habilis.core.errors import ToolCallError
from habilis.journal import Scope, fingerprint
from habilis.tools import ApprovalRequest, GateCall
from habilis.tools.contract import CallJournal

Work = Callable[[], Awaitable[object]]


class CallResults:
    """Remembers the results of the tool calls of a run. A `CallJournal` around another."""

    def __init__(self, inner: CallJournal | None, scope: Scope | None) -> None:
        self._inner = inner
        self._scope = scope
        self._results: dict[str, object] = {}

    async def around_call(self, call: GateCall, once: bool, work: Work) -> object:
        """Make the call, and keep its result."""
        result = await (work() if self._inner is None else self._inner.around_call(call, once, work))
        self._results[_key(call.tool, call.arguments)] = result
        return result

    async def approve(self, request: ApprovalRequest, person: Callable[[], Awaitable[Approval]] | None) -> Approval:
        """Ask as before."""
        if self._inner is not None:
            return await self._inner.approve(request, person)
        return Approval(approved=False) if person is None else await person()

    async def find(self, tool: str, arguments: Mapping[str, object]) -> tuple[object] | None:
        """The result of an equal call, from memory or from the journal; None if there was none."""
        key = _key(tool, arguments)
        if key in self._results:
            return (self._results[key],)
        entry = None if self._scope is None else find_call(self._scope, tool, arguments)
        if entry is None or self._scope is None:
            return None
        return (ToolResult.value_of(await self._scope.journal.value_of(entry)),)


class RecalledCalls:
    """Answers the calls of a second solution from the first. Stops at one that might repeat an effect."""

    def __init__(self, first: CallResults, inner: CallJournal | None) -> None:
        self._first = first
        self._inner = inner
        self.stopped = ''
        """Why the solution cannot go on."""

    async def around_call(self, call: GateCall, once: bool, work: Work) -> object:
        """The result of an equal call of the first solution; else make the call, if it is idempotent."""
        if (found := await self._first.find(call.tool, call.arguments)) is not None:
            return found[0]
        if once:
            raise self.stop(call.tool)
        token = _solution.set(self)
        try:
            return await (work() if self._inner is None else self._inner.around_call(call, once, work))
        finally:
            _solution.reset(token)

    async def approve(self, request: ApprovalRequest, person: Callable[[], Awaitable[Approval]] | None) -> Approval:
        """Nobody is asked twice: only a call that was made may be answered."""
        if await self._first.find(request.tool, request.arguments) is not None:
            return Approval()
        raise self.stop(request.tool)

    def stop(self, tool: str) -> ToolCallError:
        """End the solution. Returns the error for the call of this tool."""
        self.stopped = self.stopped or f'{tool} was called with other arguments, and must not be called again'
        return ToolCallError(self.stopped)


_solution: ContextVar[RecalledCalls | None] = ContextVar('habilis_further_solution', default=None)
"""The further solution whose tool call is being made."""


class _NoEffects:
    """The calls of an agent that a further solution calls as a tool: one that might repeat an effect stops it."""

    def __init__(self, solution: RecalledCalls, inner: CallJournal | None) -> None:
        self._solution = solution
        self._inner = inner

    async def around_call(self, call: GateCall, once: bool, work: Work) -> object:
        if once:
            raise self._solution.stop(call.tool)
        return await (work() if self._inner is None else self._inner.around_call(call, once, work))

    async def approve(self, request: ApprovalRequest, person: Callable[[], Awaitable[Approval]] | None) -> Approval:
        raise self._solution.stop(request.tool)


def without_effects(journal: CallJournal | None) -> CallJournal | None:
    """The journal, which refuses calls that might repeat an effect where a further solution started this run."""
    solution = _solution.get()
    return journal if solution is None else _NoEffects(solution, journal)


def _key(tool: str, arguments: Mapping[str, object]) -> str:
    return fingerprint(tool, arguments)
