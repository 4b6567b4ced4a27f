"""Tool calls of one solution, answered again in another: a second solution must not repeat an effect."""

from collections.abc import Awaitable, Callable, Mapping

from habilis.agent.durable.recorder import ToolResult, find_call
from habilis.core.errors import ToolCallError
from habilis.journal import Scope, fingerprint
from habilis.tools import ApprovalRequest, Deny, GateCall
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

    async def approve(
        self, request: ApprovalRequest, person: Callable[[], Awaitable[bool | Deny]] | None
    ) -> bool | Deny:
        """Ask as before."""
        if self._inner is not None:
            return await self._inner.approve(request, person)
        return False if person is None else await person()

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
            raise self._stop(call.tool)
        return await (work() if self._inner is None else self._inner.around_call(call, once, work))

    async def approve(
        self, request: ApprovalRequest, person: Callable[[], Awaitable[bool | Deny]] | None
    ) -> bool | Deny:
        """Nobody is asked twice: only a call that was made may be answered."""
        if await self._first.find(request.tool, request.arguments) is not None:
            return True
        raise self._stop(request.tool)

    def _stop(self, tool: str) -> ToolCallError:
        self.stopped = self.stopped or f'{tool} was called with other arguments, and must not be called again'
        return ToolCallError(self.stopped)


def _key(tool: str, arguments: Mapping[str, object]) -> str:
    return fingerprint(tool, arguments)
