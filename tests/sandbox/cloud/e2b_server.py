"""The part of E2B's service that the backend uses, made of the server classes of its SDK."""

import asyncio
import base64
import secrets
import subprocess
from collections.abc import AsyncIterator
from typing import Any

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from e2b.envd.client_shared import ENVD_JSON_CODEC
from e2b.envd.process import process_pb as pb
from e2b.envd.process.process_connect import Process, ProcessASGIApplication
from protobuf import Oneof
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from tests.sandbox.cloud.machines import read_some, start_command, write_all

KEY = 'e2b_0123456789'


class E2bServer(Process):
    """Sandboxes with commands; `app` is the ASGI application."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.sandboxes: dict[str, str] = {}
        """The access token of each sandbox."""

        self.renewed: list[str] = []
        self.commands: dict[str, dict[int | str, subprocess.Popen[bytes]]] = {}
        envd: Any = ProcessASGIApplication(self, codecs=[ENVD_JSON_CODEC])  # type: ignore[arg-type]
        self.app = Starlette(
            routes=[
                Route('/v2/sandboxes', self._create, methods=['POST']),
                Route('/sandboxes/{id}', self._kill, methods=['DELETE']),
                Route('/sandboxes/{id}/timeout', self._renew, methods=['POST']),
                Mount('/', app=envd),
            ]
        )

    async def _create(self, request: Request) -> Response:
        if request.headers.get('x-api-key') != KEY:
            return JSONResponse({'code': 401, 'message': 'Invalid API key'}, 401)
        wanted = await request.json()
        if wanted['templateID'] == 'missing':
            return JSONResponse({'code': 404, 'message': "template 'missing' not found"}, 404)
        self.created.append(wanted)
        name, token = secrets.token_hex(8), secrets.token_hex(8)
        self.sandboxes[name] = token
        self.commands[name] = {}
        made = {'templateID': wanted['templateID'], 'sandboxID': name, 'clientID': '', 'envdVersion': '0.6.4'}
        return JSONResponse({**made, 'envdAccessToken': token}, 201)

    async def _kill(self, request: Request) -> Response:
        name = request.path_params['id']
        if self.sandboxes.pop(name, None) is None:
            return JSONResponse({'code': 404, 'message': 'not found'}, 404)
        for process in self.commands.pop(name).values():
            process.kill()
        return Response(status_code=204)

    async def _renew(self, request: Request) -> Response:
        self.renewed.append(request.path_params['id'])
        return Response(status_code=204)

    def lose_machines(self) -> None:
        """End all machines, as a failure of the service would."""
        for commands in self.commands.values():
            for process in commands.values():
                process.kill()

    # Commands, as `envd` in the sandbox has them ----------------------------------------------------------------------

    def _commands(self, ctx: Any) -> dict[int | str, subprocess.Popen[bytes]]:
        headers = ctx.request_headers
        name = headers['e2b-sandbox-id']
        if name not in self.sandboxes:  # it was killed while the request was on its way
            raise ConnectError(Code.NOT_FOUND, 'sandbox not found')
        assert headers['x-access-token'] == self.sandboxes[name]
        return self.commands[name]

    async def start(self, request: pb.StartRequest, ctx: Any) -> AsyncIterator[pb.StartResponse]:
        """Start a command, and send what it writes."""
        user = base64.b64decode(ctx.request_headers['authorization'].removeprefix('Basic '))
        assert (user, request.stdin) == (b'root:', True)
        assert request.process is not None
        process = start_command(request.process.cmd, *request.process.args)
        self._commands(ctx)[process.pid] = process
        yield _event(Oneof('start', pb.ProcessEvent.StartEvent(pid=process.pid)))
        while data := await asyncio.to_thread(read_some, process):
            yield _event(Oneof('data', pb.ProcessEvent.DataEvent(output=Oneof('stdout', data))))
        yield _event(Oneof('end', pb.ProcessEvent.EndEvent(exit_code=process.returncode, exited=True)))

    async def send_input(self, request: pb.SendInputRequest, ctx: Any) -> pb.SendInputResponse:
        """Write to stdin."""
        assert request.process is not None
        assert request.process.selector is not None
        assert request.input is not None
        assert request.input.input is not None
        process = self._commands(ctx)[request.process.selector.value]
        await asyncio.to_thread(write_all, process, request.input.input.value)
        return pb.SendInputResponse()


def _event(event: Any) -> pb.StartResponse:
    return pb.StartResponse(event=pb.ProcessEvent(event=event))
