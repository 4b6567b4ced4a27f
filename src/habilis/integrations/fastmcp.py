"""FastMCP: `HabilisProvider`, the sandbox of its code mode."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Self, Unpack

from habilis.integrations.cells import failure_of, printed_by, result_of
from habilis.integrations.top_level_return import call_for_return
from habilis.sandbox.host.functions import HostFunction, is_async
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.session import Sandbox

try:
    from fastmcp.exceptions import ToolError
    from fastmcp.server.dependencies import get_context
except ModuleNotFoundError as error:
    msg = 'habilis.integrations.fastmcp needs FastMCP: pip install fastmcp'
    raise ImportError(msg) from error

RETURN = 'return_value'
WITHOUT_SESSIONS = '2026-07-28'
"""The first version of MCP in which each request is a connection of its own."""


def mcp_session() -> str | None:
    """The MCP session that calls; None if the client has none, as in newer versions of MCP."""
    context = get_context()
    request = context.request_context
    return context.session_id if request and request.protocol_version < WITHOUT_SESSIONS else None


class HabilisProvider:
    """Runs the code of `execute` in a sandbox: `CodeMode(sandbox_provider=HabilisProvider())`.

    Close it when the server ends, or use it as an async context manager. Takes the arguments of `Sandbox.create`, and:

    Args:
        owner: names whose sandbox the code runs in, which keeps its variables; `None`: a new one for each call.
        sandboxes: how many are kept; beyond that, the one that was not used for longest is closed.
    """

    def __init__(
        self,
        backend_name: str = 'auto',
        /,
        *,
        owner: Callable[[], str | None] = mcp_session,
        sandboxes: int = 100,
        **settings: Unpack[SandboxSettings],
    ) -> None:
        self._backend_name = backend_name
        self._owner = owner
        self._max_kept = sandboxes
        self._settings = settings
        self._kept: dict[str, Sandbox] = {}
        self._opening = asyncio.Lock()

    async def run(
        self,
        code: str,
        *,
        inputs: Mapping[str, object] | None = None,
        external_functions: Mapping[str, Callable[..., object]] | None = None,
    ) -> object:
        """The value that the code returns, or that of its last expression, or else what it has printed.

        Raises `ToolError` if the code fails: FastMCP shows its message to the client.
        """
        returned: list[object] = []
        named = (external_functions or {}).items()
        functions = [HostFunction(name=name, call=call, is_async=is_async(call)) for name, call in named]
        last = HostFunction(name=RETURN, call=returned.append, is_async=False, parameters=('value',), ends_cell=True)
        async with self._sandbox() as sandbox:
            if inputs:
                await sandbox.set_variables(inputs)
            tools = [*(self._settings.get('tools') or ()), *functions, last]
            cell = await sandbox.run(call_for_return(code, RETURN), tools=tools)
        if not cell.ok:
            raise ToolError(printed_by(cell) + failure_of(cell))
        if returned:
            return returned[0]
        return (printed_by(cell) or None) if cell.text is None else result_of(cell)

    async def close(self) -> None:
        """Close all sandboxes."""
        while self._kept:
            await self._kept.popitem()[1].close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    @asynccontextmanager
    async def _sandbox(self) -> AsyncGenerator[Sandbox]:
        owner = self._owner()
        if owner is None:
            async with await Sandbox.create(self._backend_name, **self._settings) as sandbox:
                yield sandbox
            return
        async with self._opening:
            sandbox = self._kept.pop(owner, None) or await Sandbox.create(self._backend_name, **self._settings)
            self._kept[owner] = sandbox  # the last one now: the dict is in the order of use
            idle = [name for name, each in self._kept.items() if each is not sandbox and not each.busy]
            for name in idle[: max(0, len(self._kept) - self._max_kept)]:
                await self._kept.pop(name).close()
        yield sandbox
