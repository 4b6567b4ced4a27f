"""The connection to one MCP server: opened on the event loop of a run, opened again a few times if it is lost."""

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

from habilis.core.errors import ToolCallError, ToolServerError, ToolTimeout
from habilis.tools.logs import LOGGER, ToolChannel, current_channel
from habilis.tools.mcp.descriptions import clean, clean_line
from habilis.tools.mcp.transports import Trouble

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.session import IncomingMessage

T = TypeVar('T')
MAX_LOSSES = 3
"""How often in a row a connection may be lost, or not come about, before the server is left alone."""

CLOSE_SECONDS = 10.0

MISSING = "MCP servers need the package mcp: pip install 'habilis[mcp]'"


@dataclass(eq=False)
class ActiveCall:
    """A call that waits for the server, which may ask back."""

    timeout: asyncio.Timeout
    seconds: float
    channel: ToolChannel | None = field(default_factory=current_channel)
    context: contextvars.Context = field(default_factory=contextvars.copy_context)

    async def in_call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something as a part of the call, such as asking the user; its timeout does not count meanwhile."""
        loop = asyncio.get_running_loop()
        self.timeout.reschedule(None)
        try:
            return await loop.create_task(_awaited(work), context=self.context)
        finally:
            self.timeout.reschedule(loop.time() + self.seconds)


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


class ServerConnection:
    """Keeps the client of the SDK in a task of its own, because it must be closed by the task that opened it."""

    def __init__(
        self,
        name: str,
        make_client: 'Callable[[Trouble], Client]',
        *,
        seconds: float,
        start_seconds: float,
        on_change: Callable[[], None],
    ) -> None:
        self._name = name
        self._make_client = make_client
        self._seconds, self._start_seconds = seconds, start_seconds
        self._on_change = on_change
        self._trouble = Trouble()
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._turn = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._losses = 0
        self._calls: list[ActiveCall] = []

    @property
    def active(self) -> ActiveCall | None:
        """The call that was begun last; None if none is under way."""
        return self._calls[-1] if self._calls else None

    def try_again(self) -> None:
        """Forget earlier losses: a new run may have more luck."""
        self._losses = 0

    async def client(self) -> 'Client':
        """The open client. Raises `ToolServerError`."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # that of an earlier run, perhaps closed by now
            await self.close()
            self._loop, self._turn = loop, asyncio.Lock()
        async with self._turn:
            if self._client is None or self._trouble.is_over:
                await self._end()
                self._client = await self._open()
            return self._client

    async def _open(self) -> 'Client':
        if self._losses >= MAX_LOSSES:
            msg = f'the MCP server {self._name} failed {MAX_LOSSES} times and is left alone: {self._trouble.text}'
            raise ToolServerError(msg)
        self._trouble, self._closing = Trouble(), asyncio.Event()
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[Client] = loop.create_future()
        # With no context of a run: what the server sends belongs to none.
        self._task = loop.create_task(self._hold(ready), context=contextvars.Context())
        try:
            async with asyncio.timeout(self._start_seconds):
                return await asyncio.shield(ready)
        except TimeoutError:
            self._lose(f'it did not answer within {self._start_seconds:g} s')
        except ToolServerError as error:
            self._lose(str(error))
        except Exception as error:  # of the SDK, of HTTP, of the protocol
            self._lose(_first_words(error))
        await self._end()
        msg = f'the MCP server {self._name} cannot be used: {self._trouble.text}'
        raise ToolServerError(msg)

    async def _hold(self, ready: 'asyncio.Future[Client]') -> None:
        """Keep the client open until it is closed."""
        try:
            async with self._make_client(self._trouble) as client, _listening(client, self._on_change):
                ready.set_result(client)
                await self._closing.wait()
        except asyncio.CancelledError:
            if not ready.done():
                ready.cancel()
            raise
        except BaseException as error:
            if not isinstance(error, Exception):
                LOGGER.debug('the connection to %s ended', self._name, exc_info=error)
            if ready.done():
                self._trouble.end(_first_words(error))
            else:
                ready.set_exception(error if isinstance(error, Exception) else ToolServerError(str(error)))
        finally:
            self._trouble.is_over = True

    async def request(self, work: 'Callable[[Client, ActiveCall], Awaitable[T]]') -> T:
        """Ask the server. Raises `ToolServerError` if it fails, and `ToolCallError` for an error that it reports.

        A request is never sent again: the server may have done what it asks for.
        """
        from mcp import MCPError

        client = await self.client()
        try:
            async with asyncio.timeout(self._seconds) as timeout:
                call = ActiveCall(timeout, self._seconds)
                self._calls.append(call)
                try:
                    found = await work(client, call)
                finally:
                    self._calls.remove(call)
        except TimeoutError:
            msg = f'the MCP server {self._name} did not answer within {self._seconds:g} s'
            raise ToolTimeout(msg) from None
        except ToolCallError:
            raise
        except MCPError as error:
            if self._trouble.is_over:
                raise self._lost() from error
            raise ToolCallError(clean(error.message)) from error
        except Exception as error:  # of HTTP, of the protocol, or a result that does not fit its schema
            if self._trouble.is_over:
                raise self._lost() from error
            msg = f'the MCP server {self._name} gave an invalid answer: {_first_words(error)}'
            raise ToolServerError(msg) from error
        self._losses = 0
        return found

    def _lose(self, reason: str) -> None:
        self._losses += 1
        self._trouble.end(reason)

    def _lost(self) -> ToolServerError:
        self._losses += 1
        return ToolServerError(f'the MCP server {self._name} failed during the call: {self._trouble.text}')

    async def _end(self) -> None:
        """Close what is left of a connection of this loop."""
        task, self._task, self._client = self._task, None, None
        if task is None:
            return
        self._closing.set()
        _, late = await asyncio.wait({task}, timeout=CLOSE_SECONDS if not self._trouble.is_over else 0.01)
        if late:
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            LOGGER.debug('the connection to %s was not closed cleanly', self._name, exc_info=error)

    async def close(self) -> None:
        """Close the connection, also from another event loop."""
        loop, running = self._loop, asyncio.get_running_loop()
        if loop is running:
            await self._end()
        elif loop is not None and loop.is_running():
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._end(), loop))
        self._client = self._task = self._loop = None


@contextlib.asynccontextmanager
async def _listening(client: 'Client', on_change: Callable[[], None]) -> AsyncGenerator[None]:
    """Ask a server of the newer protocol to tell of changes; older ones tell without being asked."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    tools = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
        yield
        return
    task = asyncio.create_task(_listen(client, on_change))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _listen(client: 'Client', on_change: Callable[[], None]) -> None:
    try:
        async with client.listen(tools_list_changed=True) as changes:
            async for _ in changes:
                on_change()
    except Exception as error:  # the server need not support it
        LOGGER.debug('no changes of tools are told: %s', error)


def is_tool_change(message: 'IncomingMessage') -> bool:
    """Whether a server says that its tools have changed."""
    return getattr(message, 'method', '') == 'notifications/tools/list_changed'


def _first_words(error: BaseException) -> str:
    """The innermost error of a group, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = next(iter(cast('Sequence[BaseException]', error.exceptions)))
    return clean_line(str(error) or type(error).__name__, 300)
