"""The WebSocket on which the guest protocol runs."""

import asyncio
import contextlib
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from habilis.core.codec import CodecError, dump
from habilis.core.errors import SandboxError
from habilis.sandbox.remote.wire import DONE, NO_SUCH_GUEST, REFUSED, Frame, parse_frame
from habilis.server.guest_host import HostedGuest
from habilis.server.models import LimitsModel
from habilis.server.operations import Service, clamp
from habilis.server.registry import TooMany

HELLO_SECONDS = 10.0
MAX_HELLO = 64 << 10
MAX_MOUNTS = 20
MAX_REASON = 100


class _Spec(BaseModel):
    model_config = ConfigDict(extra='forbid')
    limits: LimitsModel
    mounts: list[tuple[str, bool]] = Field(max_length=MAX_MOUNTS)


class _Hello(BaseModel):
    model_config = ConfigDict(extra='forbid')
    spec: _Spec | None = None
    id: str | None = None
    seen: int = Field(0, ge=0)


class _RefusedSocket(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


async def serve_guest(service: Service, socket: WebSocket) -> None:
    """Serve one connection: greet, then pass frames on until it ends."""
    await socket.accept()
    try:
        name, hosted, seen = await _greet(service, socket)
    except _RefusedSocket as refused:
        with contextlib.suppress(WebSocketDisconnect):
            await socket.close(refused.code, str(refused)[:MAX_REASON])
        return
    except (WebSocketDisconnect, TimeoutError):
        return
    ended = await _Connection(socket, hosted).run(name, seen)
    if ended:
        await service.registry.remove(name)


class _Connection:
    """One connection of a client to its guest. The newest one counts."""

    def __init__(self, socket: WebSocket, hosted: HostedGuest) -> None:
        self._socket = socket
        self._hosted = hosted
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        hosted.connections += 1
        self._number = hosted.connections

    async def run(self, name: str, seen: int) -> bool:
        """Pass frames on in both directions. Returns whether the guest has ended."""
        hosted, loop = self._hosted, asyncio.get_running_loop()
        welcome = dump({'id': name, 'seen': hosted.channel.seen, 'isolation': hosted.isolation})
        hosted.connected = True
        hosted.touch()
        sending: asyncio.Task[None] | None = None
        try:
            await self._socket.send_text(Frame(0, 0, 'welcome', welcome).encode())
            sending = loop.create_task(self._send())
            hosted.channel.connect(lambda text: _from_any_thread(loop, self._outgoing, text), seen)
            return await self._receive()
        except CodecError as error:
            await self._close(REFUSED, str(error))
            return True
        except WebSocketDisconnect as gone:
            return gone.code == DONE
        finally:
            if sending is not None:
                sending.cancel()
            if hosted.connections == self._number:
                hosted.channel.disconnect()
                hosted.connected = False
                hosted.touch()

    async def _receive(self) -> bool:
        hosted = self._hosted
        while True:
            message = await self._socket.receive()
            if message['type'] == 'websocket.disconnect':
                raise WebSocketDisconnect(int(message.get('code') or 1006))
            if hosted.connections != self._number:  # the client has connected again meanwhile
                await self._close(NO_SUCH_GUEST, 'there is a newer connection')
                return False
            hosted.touch()
            hosted.take(parse_frame(message.get('text')))

    async def _send(self) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it is closed; the receiver finds out, too
            while True:
                await self._socket.send_text(await self._outgoing.get())

    async def _close(self, code: int, reason: str) -> None:
        if self._socket.application_state is WebSocketState.CONNECTED:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await self._socket.close(code, reason[:MAX_REASON])


async def _greet(service: Service, socket: WebSocket) -> tuple[str, HostedGuest, int]:
    """A new guest, or the one that the client has lost its connection to; and what the client has seen."""
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            frame = parse_frame((await socket.receive()).get('text'))
        if frame.kind != 'hello':
            raise _RefusedSocket(REFUSED, 'hello is missing')
        hello = _Hello.model_validate_json(frame.body[:MAX_HELLO])
    except (CodecError, ValidationError) as error:
        raise _RefusedSocket(REFUSED, f'malformed hello: {type(error).__name__}') from None
    owner = str(socket.scope['owner'])
    if hello.id is not None:
        found = service.registry.find(owner, hello.id)
        if not isinstance(found, HostedGuest):
            raise _RefusedSocket(NO_SUCH_GUEST, 'there is no such guest; it may have expired')
        return hello.id, found, hello.seen
    if hello.spec is None:
        raise _RefusedSocket(REFUSED, 'hello needs a spec or an id')
    name, hosted = await _start(service, owner, hello.spec)
    return name, hosted, 0


async def _start(service: Service, owner: str, spec: _Spec) -> tuple[str, HostedGuest]:
    for target, _ in spec.mounts:
        path = PurePosixPath(target)
        if not path.is_absolute() or '..' in path.parts or len(path.parts) < 2 or '\0' in target:
            raise _RefusedSocket(REFUSED, f'cannot mount at {target[:50]!r}')

    async def make() -> HostedGuest:
        backend = await asyncio.to_thread(service.backend)
        limits = clamp(spec.limits, service.settings.limits)
        made = HostedGuest(backend, limits, spec.mounts, service.settings)
        await made.start()
        return made

    try:
        return await service.registry.start(owner, make)
    except TooMany as error:
        raise _RefusedSocket(REFUSED, f'{error}') from error
    except SandboxError as error:
        raise _RefusedSocket(REFUSED, f'{error}') from error


def _from_any_thread(loop: asyncio.AbstractEventLoop, queue: 'asyncio.Queue[str]', text: str) -> None:
    with contextlib.suppress(RuntimeError):  # the server has stopped
        loop.call_soon_threadsafe(queue.put_nowait, text)
