"""The operations of the service over HTTP: a table, from which the routes and the OpenAPI document are made."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, fields
from typing import BinaryIO, Generic, TypeVar, cast

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from habilis._version import __version__
from habilis.core.codec import NotPlain
from habilis.core.errors import SandboxError, WorkspaceError
from habilis.core.limits import Limits
from habilis.sandbox.backends import backend
from habilis.sandbox.contract import Backend
from habilis.sandbox.files.workspace import Workspace
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.session import Sandbox
from habilis.server.models import (
    CellModel,
    CreateRequest,
    Done,
    ExecuteRequest,
    FileList,
    Health,
    LimitsModel,
    SandboxInfo,
    SandboxList,
    parse_request,
)
from habilis.server.registry import Hosted, SandboxRegistry
from habilis.server.sandbox_host import CellExecution, HostedSandbox
from habilis.server.settings import ServiceSettings

EVENTS = 'text/event-stream'
KEEPALIVE_SECONDS = 15.0
"""After so many seconds without output a comment is sent, so that no proxy takes the connection for dead."""

AS_FILE = {'Content-Disposition': 'attachment', 'X-Content-Type-Options': 'nosniff'}
"""Never shown by a browser as a page: the content is a stranger's."""

CHUNK = 1 << 19


class NotThere(Exception):
    """The resource does not exist, or belongs to another caller."""


class BadRequest(Exception):
    """The request is not valid."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """What the operations need."""

    settings: ServiceSettings
    registry: SandboxRegistry
    backend: Callable[[], Backend]
    """The backend; it is loaded when it is first needed."""

    def machine_backend(self) -> Backend:
        """The backend of machines: the same, or `process` if it cannot start processes. Raises `SandboxError`."""
        found = self.backend()
        return found if getattr(found, 'has_processes', False) else backend('process')


S = TypeVar('S')


@dataclass(frozen=True, kw_only=True)
class Operation(Generic[S]):
    """One operation of a service."""

    method: str
    path: str
    handler: Callable[[S, Request], Awaitable[Response]]
    request: type[BaseModel] | type[bytes] | None = None
    response: type[BaseModel] | type[bytes] = field(default=Done)

    @property
    def summary(self) -> str:
        """What it does."""
        return (self.handler.__doc__ or '').partition('\n')[0]


def clamp(wanted: LimitsModel, largest: Limits) -> Limits:
    """The limits that a caller gets: those it wants, and at most the largest."""
    return Limits(
        **{item.name: min(getattr(wanted, item.name), getattr(largest, item.name)) for item in fields(Limits)}
    )


async def create_sandbox(service: Service, request: Request) -> Response:
    """Create a sandbox."""
    wanted = parse_request(CreateRequest, await request.body())

    async def make() -> HostedSandbox:
        settings = cast('SandboxSettings', dict(service.settings.backend_settings))
        settings['limits'] = clamp(wanted.limits, service.settings.limits)
        settings['variables'] = wanted.variables
        settings['env'] = wanted.env
        settings['workspace'] = True
        return HostedSandbox(await Sandbox.create(service.settings.backend, **settings), service.settings)

    name, made = await service.registry.start(request.scope['owner'], make)
    return _json(_info(name, made), 201)


async def list_sandboxes(service: Service, request: Request) -> Response:
    """List the sandboxes of this key."""
    found = [_info(name, hosted) for name, hosted in service.registry.of(request.scope['owner'])]
    return _json(SandboxList(sandboxes=found))


async def get_sandbox(service: Service, request: Request) -> Response:
    """Get a sandbox."""
    return _json(_info(request.path_params['id'], _find(service, request)))


async def delete_sandbox(service: Service, request: Request) -> Response:
    """Close a sandbox and remove its files."""
    _find(service, request)
    await service.registry.remove(request.path_params['id'])
    return _json(Done())


async def execute(service: Service, request: Request) -> Response:
    """Run a cell; its variables and files stay for the next."""
    hosted = _sandbox(service, request)
    wanted = parse_request(ExecuteRequest, await request.body())
    execution = hosted.execute(wanted.code, wanted.seconds, wanted.id)
    if wanted.stream:
        return StreamingResponse(_events(execution), media_type=EVENTS, headers={'Cache-Control': 'no-store'})
    return Response(await execution.result(), media_type='application/json')


async def _events(execution: CellExecution) -> AsyncGenerator[str]:
    """The output and the result of a cell as Server-Sent Events."""
    async for written in execution.output(KEEPALIVE_SECONDS):
        yield ': running\n\n' if written is None else _event(written[0], json.dumps({'text': written[1]}))
    try:
        yield _event('result', await execution.result())
    except (NotPlain, SandboxError, ValueError) as error:
        yield _event('error', json.dumps({'error': str(error)}))


def _event(kind: str, data: str) -> str:
    return f'event: {kind}\ndata: {data}\n\n'


async def list_files(service: Service, request: Request) -> Response:
    """List the files of the workspace."""
    workspace = _sandbox(service, request).sandbox.workspace
    return Response(await asyncio.to_thread(_file_list, workspace), media_type='application/json')


def _file_list(workspace: Workspace) -> str:
    """A `FileList` as JSON. A name need not be valid Unicode, which models insist on."""
    return json.dumps({'files': workspace.files()})


async def upload_file(service: Service, request: Request) -> Response:
    """Write a file of the workspace."""
    hosted = _sandbox(service, request)
    await hosted.sandbox.upload(_relative(request), await request.body())
    return _json(Done())


async def download_file(service: Service, request: Request) -> Response:
    """Read a file of the workspace."""
    opened = contextlib.ExitStack()
    workspace = _sandbox(service, request).sandbox.workspace
    file = await asyncio.to_thread(opened.enter_context, workspace.opened(_relative(request)))
    return Download(file, opened)


async def take_snapshot(service: Service, request: Request) -> Response:
    """The variables as bytes."""
    return _binary(bytes(await _sandbox(service, request).sandbox.snapshot()))


async def load_snapshot(service: Service, request: Request) -> Response:
    """Replace the variables by those of a snapshot."""
    hosted = _sandbox(service, request)
    await hosted.sandbox.load_snapshot(await request.body())
    return _json(Done())


async def check_health(service: Service, request: Request) -> Response:
    """Whether the service works. Needs no key."""
    health = Health(
        status='ok', version=__version__, backend=service.settings.backend, sandboxes=service.registry.count
    )
    return _json(health)


ONE = '/v1/sandboxes/{id}'
OPERATIONS = tuple(
    Operation(method=method, path=path, handler=handler, request=request, response=response)
    for method, path, handler, request, response in (
        ('POST', '/v1/sandboxes', create_sandbox, CreateRequest, SandboxInfo),
        ('GET', '/v1/sandboxes', list_sandboxes, None, SandboxList),
        ('GET', ONE, get_sandbox, None, SandboxInfo),
        ('DELETE', ONE, delete_sandbox, None, Done),
        ('POST', f'{ONE}/execute', execute, ExecuteRequest, CellModel),
        ('GET', f'{ONE}/files', list_files, None, FileList),
        ('PUT', f'{ONE}/files/{{path:path}}', upload_file, bytes, Done),
        ('GET', f'{ONE}/files/{{path:path}}', download_file, None, bytes),
        ('GET', f'{ONE}/snapshot', take_snapshot, None, bytes),
        ('PUT', f'{ONE}/snapshot', load_snapshot, bytes, Done),
        ('GET', '/v1/health', check_health, None, Health),
    )
)


def _find(service: Service, request: Request) -> Hosted:
    found = service.registry.find(request.scope['owner'], request.path_params['id'])
    if found is None:
        msg = 'there is no such sandbox; it may have expired'
        raise NotThere(msg)
    return found


def _sandbox(service: Service, request: Request) -> HostedSandbox:
    found = _find(service, request)
    if not isinstance(found, HostedSandbox):
        msg = 'this sandbox is used through another protocol; here it can only be deleted'
        raise BadRequest(msg)
    return found


def _relative(request: Request) -> str:
    path = str(request.path_params['path'])
    if path.startswith('/'):
        msg = f'{path!r} is not a path inside the workspace'
        raise WorkspaceError(msg)
    return path


def _info(name: str, hosted: Hosted) -> SandboxInfo:
    return SandboxInfo(id=name, kind=hosted.kind, created=hosted.created, busy=hosted.busy)


def _json(model: BaseModel, status: int = 200) -> Response:
    return Response(model.model_dump_json(), status, media_type='application/json')


def _binary(data: bytes) -> Response:
    return Response(data, media_type='application/octet-stream', headers=AS_FILE)


class Download(StreamingResponse):
    """A file as it is now, read piece by piece as the client takes it."""

    def __init__(self, file: BinaryIO, opened: contextlib.ExitStack) -> None:
        super().__init__(self._content(file), media_type='application/octet-stream', headers=AS_FILE)
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file, and close it."""
        with self._opened:
            await super().__call__(scope, receive, send)

    async def _content(self, file: BinaryIO) -> AsyncGenerator[bytes]:
        left = os.fstat(file.fileno()).st_size  # it may grow meanwhile, without end
        while left > 0 and (data := await asyncio.to_thread(file.read, min(left, CHUNK))):
            left -= len(data)
            yield data
