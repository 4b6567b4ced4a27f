"""The part of Daytona's service that the backend uses."""

import asyncio
import contextlib
import os
import secrets
import subprocess
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from tests.sandbox.cloud.machines import start_command

KEY = 'dtn_0123456789'
CHUNK = 1 << 15
STDOUT = b'\x01\x01\x01'


class DaytonaServer:
    """Sandboxes with one session and one command each; `app` is the ASGI application."""

    def __init__(self) -> None:
        self.url = ''
        self.created: list[dict[str, Any]] = []
        self.commands: dict[str, subprocess.Popen[bytes] | None] = {}
        """The command of each sandbox."""

        self.renewed: list[str] = []
        session = '/toolbox/{id}/process/session'
        self.app = Starlette(
            routes=[
                Route('/sandbox', self._create, methods=['POST']),
                Route('/sandbox/{id}', self._delete, methods=['DELETE']),
                Route('/sandbox/{id}/last-activity', self._renew, methods=['POST']),
                Route(session, self._make_session, methods=['POST']),
                Route(f'{session}/{{session}}/exec', self._execute, methods=['POST']),
                Route(f'{session}/{{session}}/command/{{command}}/input', self._send_input, methods=['POST']),
                WebSocketRoute(f'{session}/{{session}}/command/{{command}}/logs', self._follow),
            ]
        )

    def lose_machines(self) -> None:
        """End all machines, as a failure of the service would."""
        for process in self.commands.values():
            if process is not None:
                process.kill()

    async def _create(self, request: Request) -> Response:
        if request.headers.get('authorization') != f'Bearer {KEY}':
            return JSONResponse({'message': 'Invalid credentials', 'statusCode': 401}, 401)
        wanted = await request.json()
        if wanted.get('snapshot') == 'missing':
            return JSONResponse({'message': 'Snapshot missing not found', 'statusCode': 404}, 404)
        self.created.append(wanted)
        name = secrets.token_hex(8)
        self.commands[name] = None
        return JSONResponse(self._describe(name, 'started'))

    def _describe(self, name: str, state: str) -> dict[str, Any]:
        owner: dict[str, Any] = {'organizationId': 'o', 'user': 'root', 'env': {}, 'labels': {}, 'public': False}
        size = {'target': 'us', 'cpu': 1, 'gpu': 0, 'memory': 1, 'disk': 1, 'kvm': False, 'networkBlockAll': True}
        return {**owner, **size, 'id': name, 'name': name, 'state': state, 'toolboxProxyUrl': f'{self.url}/toolbox'}

    async def _delete(self, request: Request) -> Response:
        name = request.path_params['id']
        if name not in self.commands:
            return JSONResponse({'message': 'Sandbox not found', 'statusCode': 404}, 404)
        process = self.commands.pop(name)
        if process is not None:
            process.kill()
        return JSONResponse(self._describe(name, 'destroyed'))

    async def _renew(self, request: Request) -> Response:
        self.renewed.append(request.path_params['id'])
        return Response(status_code=201)

    # In the sandbox ---------------------------------------------------------------------------------------------------

    async def _make_session(self, request: Request) -> Response:
        assert (await request.json()) == {'sessionId': 'habilis'}
        return Response(status_code=201)

    async def _execute(self, request: Request) -> Response:
        wanted = await request.json()
        assert (wanted['runAsync'], wanted['suppressInputEcho']) == (True, True)
        self.commands[request.path_params['id']] = start_command(['sh', '-c', wanted['command']])
        return JSONResponse({'cmdId': 'c'}, 202)

    async def _send_input(self, request: Request) -> Response:
        process = self.commands.get(request.path_params['id'])
        if process is None or process.poll() is not None:
            return JSONResponse({'message': 'command has already completed', 'statusCode': 410}, 410)
        data = (await request.json())['data']
        await asyncio.to_thread(_write, process, f'{data.removesuffix(chr(10))}\n'.encode())
        return Response(status_code=204)

    async def _follow(self, socket: WebSocket) -> None:
        await socket.accept()
        process = self.commands[socket.path_params['id']]
        assert process is not None
        assert process.stdout is not None
        while data := await asyncio.to_thread(os.read, process.stdout.fileno(), CHUNK):
            await socket.send_bytes(STDOUT + data)
        await asyncio.to_thread(process.wait)
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            assert process.stdin is not None
            process.stdin.close()
        with contextlib.suppress(RuntimeError):  # the client is gone
            await socket.close()


def _write(process: 'subprocess.Popen[bytes]', data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ValueError):  # it has ended
        process.stdin.write(data)
        process.stdin.flush()
