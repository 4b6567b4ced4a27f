"""Messages of an MCP server that is a process. The SDK's own transport has no bound for what a server sends."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from habilis.core.errors import ToolServerError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

MAX_MESSAGE = 20_000_000
"""Maximum number of bytes of one message of a server."""

TOO_LONG = f'it sent a message of more than {MAX_MESSAGE // 1_000_000} MB'
MAX_NOTIFICATIONS = 10_000
"""Maximum number of messages of a server in a row that answer nothing."""

MAX_NOISE = 100
"""Maximum number of lines that are no messages: some servers print to stdout."""

GRACE_SECONDS = 1.0
"""How long a server may take to end by itself, and then after SIGTERM."""

_TAIL = 2000


@dataclass(kw_only=True)
class Trouble:
    """Why a connection has ended, as far as its transport knows."""

    reason: str = ''
    stderr: bytearray = field(default_factory=bytearray)
    """The last of what the server has printed there."""

    is_over: bool = False

    def end(self, reason: str) -> None:
        """Keep the first reason."""
        self.reason, self.is_over = self.reason or reason, True

    @property
    def text(self) -> str:
        """The reason, with the last line that the server has printed."""
        lines = self.stderr.decode(errors='replace').strip().splitlines()
        return f'{self.reason or "it closed the connection"}' + (f': {lines[-1].strip()[:300]}' if lines else '')


@contextlib.asynccontextmanager
async def open_stdio(
    words: Sequence[str], *, env: Mapping[str, str], cwd: str | None, trouble: Trouble
) -> 'AsyncGenerator[TransportStreams]':
    """Start a server and exchange lines with it. Its environment is what is named, and PATH, HOME and the like."""
    import anyio
    from mcp.client.stdio import get_default_environment
    from mcp.shared.message import SessionMessage

    program = shutil.which(words[0], path=env.get('PATH')) or words[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, *words[1:]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=get_default_environment() | dict(env),
            cwd=cwd,
            limit=MAX_MESSAGE,
            start_new_session=True,
        )
    except OSError as error:
        msg = f'{words[0]} cannot be started: {error.strerror or error}'
        raise ToolServerError(msg) from error
    inbox, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process, inbox, trouble)),
        asyncio.create_task(_write(process, outbox)),
        asyncio.create_task(_keep_stderr(process, trouble)),
    ]
    try:
        yield read, write
    finally:
        stopping = asyncio.create_task(_stop(process, tasks))
        with contextlib.suppress(asyncio.CancelledError):  # the server must not outlive a cancelled caller
            await asyncio.shield(stopping)
        await asyncio.wait({stopping})
        for stream in (inbox, read, write, outbox):
            stream.close()


async def _read(
    process: asyncio.subprocess.Process,
    inbox: 'MemoryObjectSendStream[SessionMessage | Exception]',
    trouble: Trouble,
) -> None:
    from anyio import BrokenResourceError, ClosedResourceError

    try:
        await _pass_on(process, inbox)
        await asyncio.wait([asyncio.ensure_future(process.wait())], timeout=GRACE_SECONDS)
        code = process.returncode
        trouble.end('it closed its output' if code is None else f'it ended with exit code {code}')
    except ValueError as error:
        trouble.end(str(error))
    except (ClosedResourceError, BrokenResourceError):  # closed by us
        trouble.end('it was closed')
    finally:
        inbox.close()


async def _pass_on(
    process: asyncio.subprocess.Process, inbox: 'MemoryObjectSendStream[SessionMessage | Exception]'
) -> None:
    """Pass messages on until the output ends. Raises `ValueError` with the reason not to listen any longer."""
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCNotification, jsonrpc_message_adapter

    assert process.stdout is not None
    noise = unanswering = 0
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:
            raise ValueError(TOO_LONG) from None
        if not line:
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            noise += 1
            if line.lstrip().startswith(b'{') or noise > MAX_NOISE:
                msg = f'it sent something that is no message: {line[:80]!r}'
                raise ValueError(msg) from None
            continue
        unanswering = unanswering + 1 if isinstance(message, JSONRPCNotification) else 0
        if unanswering > MAX_NOTIFICATIONS:
            msg = f'it sent more than {MAX_NOTIFICATIONS:,} messages that answer nothing'
            raise ValueError(msg)
        await inbox.send(SessionMessage(message))


async def _write(process: asyncio.subprocess.Process, outbox: 'MemoryObjectReceiveStream[SessionMessage]') -> None:
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError):  # the reader says why
        async for item in outbox:
            process.stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b'\n')
            await process.stdin.drain()


async def _keep_stderr(process: asyncio.subprocess.Process, trouble: Trouble) -> None:
    assert process.stderr is not None
    while chunk := await process.stderr.read(65_536):
        trouble.stderr += chunk
        del trouble.stderr[:-_TAIL]


async def _stop(process: asyncio.subprocess.Process, tasks: 'Sequence[asyncio.Task[None]]') -> None:
    """Close its input, then end it and all that it has started."""
    tasks[1].cancel()
    if process.stdin is not None:
        process.stdin.close()
    tasks[0].cancel()
    drain = asyncio.create_task(_drain(process))  # a server that writes cannot end while nobody reads
    for number in (None, signal.SIGTERM, getattr(signal, 'SIGKILL', signal.SIGTERM)):
        if number is not None:
            _kill(process, number)
        ended, _ = await asyncio.wait({asyncio.ensure_future(process.wait())}, timeout=GRACE_SECONDS)
        if ended:
            break
    for task in (*tasks, drain):
        task.cancel()
    await asyncio.gather(*tasks, drain, return_exceptions=True)
    cast('asyncio.SubprocessTransport', vars(process)['_transport']).close()


async def _drain(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    while await process.stdout.read(65_536):
        pass


def _kill(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == 'win32':
            process.kill()
        else:
            os.killpg(process.pid, number)
