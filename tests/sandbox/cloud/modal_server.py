"""The part of Modal's service that the backend uses: its API, and the router of commands in sandboxes."""

import asyncio
import contextlib
import os
import queue
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

from grpclib import GRPCError, Status
from grpclib.const import Cardinality, Handler
from grpclib.protocol import H2Protocol
from grpclib.server import Server, Stream
from modal_proto import api_pb2 as api
from modal_proto import task_command_router_pb2 as router

from tests.sandbox.cloud.machines import start_command

TOKEN = ('ak-0123456789', 'as-0123456789')
CHUNK = 1 << 15
NO_EXPIRY = 'e30.eyJleHAiOjk5OTk5OTk5OTl9.e30'
"""A JWT, as far as the SDK reads it."""


class ModalServer:
    """Sandboxes with a main command and one more; they end with the main one."""

    def __init__(self) -> None:
        self.url = ''
        self.full = False
        self.images: list[str] = []
        self.created: list[api.Sandbox] = []
        self.sandboxes: dict[str, list[_Command]] = {}
        """The commands of each, the main one first. The id of its task is the same."""

        self.renewed: list[str] = []

    def lose_machines(self) -> None:
        """End all sandboxes, as a failure of the service would."""
        for name in list(self.sandboxes):
            self._end(name)

    @contextlib.contextmanager
    def serving(self) -> Generator[None]:
        """Listen on a port of its own, on a thread."""
        ports: queue.Queue[int] = queue.Queue()
        thread = threading.Thread(target=lambda: asyncio.run(self._serve(ports)), daemon=True)
        thread.start()
        self.url = f'http://127.0.0.1:{ports.get(timeout=600)}'
        yield
        self._loop.call_soon_threadsafe(self._stopping.set)
        thread.join(20)

    async def _serve(self, ports: 'queue.Queue[int]') -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = _Server([self])
        with socket.create_server(('127.0.0.1', 0)) as listening:
            await server.start(sock=listening)
            ports.put(listening.getsockname()[1])
            await self._stopping.wait()
            self.lose_machines()
            server.close()
            await server.wait_closed()
            await asyncio.sleep(0)  # transports close in the next round of the loop

    def __mapping__(self) -> dict[str, Handler]:
        client, commands = '/modal.client.ModalClient', '/modal.task_command_router.TaskCommandRouter'
        read = Handler(
            self._read, Cardinality.UNARY_STREAM, router.TaskExecStdioReadRequest, router.TaskExecStdioReadResponse
        )
        return {
            f'{client}/AppGetOrCreate': _unary(self._find_app, api.AppGetOrCreateRequest),
            f'{client}/EnvironmentGetOrCreate': _unary(self._describe, api.EnvironmentGetOrCreateRequest),
            f'{client}/ImageGetOrCreate': _unary(self._build, api.ImageGetOrCreateRequest),
            f'{client}/AuthTokenGet': _unary(self._authorize, api.AuthTokenGetRequest),
            f'{client}/SandboxCreateV2': _unary(self._create, api.SandboxCreateV2Request),
            f'{client}/SandboxTerminateV2': _unary(self._terminate, api.SandboxTerminateRequest),
            f'{commands}/SandboxStdinWriteV2': _unary(self._renew, router.SandboxStdinWriteV2Request),
            f'{commands}/TaskExecStart': _unary(self._execute, router.TaskExecStartRequest),
            f'{commands}/TaskExecStdinWrite': _unary(self._write, router.TaskExecStdinWriteRequest),
            f'{commands}/TaskExecStdioRead': read,
        }

    # API --------------------------------------------------------------------------------------------------------------

    async def _find_app(self, request: api.AppGetOrCreateRequest, metadata: Any) -> api.AppGetOrCreateResponse:
        if (metadata['x-modal-token-id'], metadata['x-modal-token-secret']) != TOKEN:
            raise GRPCError(Status.UNAUTHENTICATED, 'Token ID is malformed')
        return api.AppGetOrCreateResponse(app_id=f'ap-{request.app_name}')

    async def _describe(self, request: object, metadata: object) -> api.EnvironmentGetOrCreateResponse:
        settings = api.EnvironmentSettings(image_builder_version='2025.06')
        described = api.EnvironmentMetadata(name='main', settings=settings)
        return api.EnvironmentGetOrCreateResponse(environment_id='en-1', metadata=described)

    async def _build(self, request: api.ImageGetOrCreateRequest, metadata: object) -> api.ImageGetOrCreateResponse:
        self.images.append(request.image.dockerfile_commands[0])
        result = api.GenericResult(status=api.GenericResult.GENERIC_STATUS_SUCCESS)
        if 'missing' in self.images[-1]:
            result = api.GenericResult(status=api.GenericResult.GENERIC_STATUS_FAILURE, exception='manifest unknown')
        return api.ImageGetOrCreateResponse(image_id='im-1', result=result)

    async def _authorize(self, request: object, metadata: object) -> api.AuthTokenGetResponse:
        return api.AuthTokenGetResponse(token=NO_EXPIRY)

    async def _create(self, request: api.SandboxCreateV2Request, metadata: object) -> api.SandboxCreateV2Response:
        if self.full:
            raise GRPCError(Status.RESOURCE_EXHAUSTED, 'Too many sandboxes')
        wanted = request.definition
        self.created.append(wanted)
        name = f'sb-{secrets.token_hex(8)}'
        self.sandboxes[name] = [_Command(wanted.entrypoint_args, lambda: self._end(name))]
        access = api.CommandRouterAccess(url=self.url, jwt=NO_EXPIRY)
        return api.SandboxCreateV2Response(sandbox_id=name, task_id=name, command_router_access=access)

    async def _terminate(self, request: api.SandboxTerminateRequest, metadata: object) -> api.SandboxTerminateResponse:
        self._end(request.sandbox_id)
        return api.SandboxTerminateResponse()

    def _end(self, name: str) -> None:
        for command in self.sandboxes.pop(name, []):
            command.process.kill()

    # Commands ---------------------------------------------------------------------------------------------------------

    def _commands(self, task: str) -> 'list[_Command]':
        if task not in self.sandboxes:
            raise GRPCError(Status.NOT_FOUND, 'Sandbox has already finished')
        return self.sandboxes[task]

    async def _renew(
        self, request: router.SandboxStdinWriteV2Request, metadata: object
    ) -> router.SandboxStdinWriteV2Response:
        await asyncio.to_thread(self._commands(request.task_id)[0].write, request.data)
        self.renewed.append(request.task_id)
        return router.SandboxStdinWriteV2Response()

    async def _execute(self, request: router.TaskExecStartRequest, metadata: object) -> router.TaskExecStartResponse:
        self._commands(request.task_id).append(_Command(request.command_args, lambda: None))
        return router.TaskExecStartResponse()

    async def _write(
        self, request: router.TaskExecStdinWriteRequest, metadata: object
    ) -> router.TaskExecStdinWriteResponse:
        command = self._commands(request.task_id)[1]
        if command.ended:
            raise GRPCError(Status.FAILED_PRECONDITION, 'the command has ended')
        await asyncio.to_thread(command.write, request.data)
        return router.TaskExecStdinWriteResponse()

    async def _read(self, stream: Stream[router.TaskExecStdioReadRequest, router.TaskExecStdioReadResponse]) -> None:
        request = await stream.recv_message()
        assert request is not None
        command = self._commands(request.task_id)[1]
        offset = request.offset
        while True:
            changed = command.changed
            if data := bytes(command.output[offset : offset + CHUNK]):
                await stream.send_message(router.TaskExecStdioReadResponse(data=data))
                offset += len(data)
            elif command.ended:
                return
            else:
                await changed.wait()


class _Command:
    """A command with all of its output, which the SDK may ask for again."""

    def __init__(self, arguments: Sequence[str], when_ended: Callable[[], None]) -> None:
        self.process = start_command(arguments)
        self.output = bytearray()
        self.ended = False
        self.changed = asyncio.Event()
        self._when_ended = when_ended
        threading.Thread(target=self._follow, args=(asyncio.get_running_loop(),), daemon=True).start()

    def write(self, data: bytes) -> None:
        """Write to stdin."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):  # it has ended
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        while data := os.read(self.process.stdout.fileno(), CHUNK):
            loop.call_soon_threadsafe(self._take, data)
        self.process.wait()
        self.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        with contextlib.suppress(RuntimeError):  # the server has stopped
            loop.call_soon_threadsafe(self._take, b'')

    def _take(self, data: bytes) -> None:
        self.output += data
        if not data:
            self.ended = True
            self._when_ended()
        self.changed.set()
        self.changed = asyncio.Event()


class _Server(Server):
    """Closes its connections, too."""

    def __init__(self, services: Sequence[ModalServer]) -> None:
        super().__init__(services)
        self._protocols: list[H2Protocol] = []

    def _protocol_factory(self) -> H2Protocol:
        self._protocols.append(super()._protocol_factory())
        return self._protocols[-1]

    def close(self) -> None:
        super().close()
        for protocol in self._protocols:
            protocol.connection.close()


def _unary(answer: Callable[[Any, Any], Awaitable[Any]], request: type) -> Handler:
    async def handle(stream: Stream[Any, Any]) -> None:
        await stream.send_message(await answer(await stream.recv_message(), stream.metadata))

    return Handler(handle, Cardinality.UNARY_UNARY, request, object)
