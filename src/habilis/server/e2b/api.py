"""E2B's API over HTTP: create, list, extend and kill sandboxes; their files; and the code interpreter."""

import asyncio
import base64
import json
import time
import weakref
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, Field
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route

from habilis.core.errors import SandboxError
from habilis.core.narrowing import expect, fields_in
from habilis.sandbox.contract import Cell, Display
from habilis.server.access import BodyRefused
from habilis.server.e2b.callers import NOT_FOUND, error
from habilis.server.e2b.contexts import CodeContext, Contexts
from habilis.server.e2b.envd import make_services
from habilis.server.e2b.machine import HOME, HostedMachine, MachineError, MachineGone
from habilis.server.models import parse_request
from habilis.server.operations import AS_FILE, CHUNK, Service
from habilis.server.registry import TooMany

VERSION = '0.6.4'
"""The version of E2B's own server in a sandbox that this one is like."""

TEMPLATES = ('', 'base', 'code-interpreter-v1')
"""The names that the SDKs send if nobody chose a template."""

_FORMATS = {
    'text/html': 'html',
    'text/markdown': 'markdown',
    'image/svg+xml': 'svg',
    'image/png': 'png',
    'image/jpeg': 'jpeg',
    'text/latex': 'latex',
    'text/plain': 'text',
}
"""In the order in which the kernel sends the forms of one value."""

_ORDER = list(_FORMATS.values())
_STATUS = {'not_found': 404, 'permission_denied': 403, 'already_exists': 409, 'resource_exhausted': 507}
M = TypeVar('M', bound=BaseModel)


class _RefusedRequest(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _NewSandbox(BaseModel):
    template: str = Field('', alias='templateID')
    timeout: float = Field(300, ge=0)
    metadata: dict[str, str] = {}
    env: dict[str, str] = Field({}, alias='envVars')
    iam: object = None
    volumes: object = Field(None, alias='volumeMounts')


class _Timeout(BaseModel):
    timeout: float = Field(300, ge=0)


class _Execution(BaseModel):
    code: str
    context: str | None = Field(None, alias='context_id')
    language: str | None = None
    env: dict[str, str] | None = Field(None, alias='env_vars')


class _NewContext(BaseModel):
    cwd: str = HOME
    language: str = 'python'


class E2bApi:
    """The endpoints."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._contexts: weakref.WeakKeyDictionary[HostedMachine, Contexts] = weakref.WeakKeyDictionary()

    def routes(self) -> list[BaseRoute]:
        """All routes of the protocol."""
        table = (
            ('POST', '/v2/sandboxes', self._create),
            ('GET', '/v2/sandboxes', self._list),
            ('GET', '/sandboxes/{id}', self._get),
            ('DELETE', '/sandboxes/{id}', self._kill),
            ('POST', '/sandboxes/{id}/timeout', self._set_timeout),
            ('POST', '/v2/sandboxes/{id}/connect', self._connect),
            ('GET', '/health', self._check),
            ('GET', '/files', self._download),
            ('POST', '/files', self._upload),
            ('POST', '/execute', self._execute),
            ('POST', '/contexts', self._make_context),
            ('GET', '/contexts', self._list_contexts),
            ('POST', '/contexts/{id}/restart', self._restart_context),
            ('DELETE', '/contexts/{id}', self._remove_context),
        )
        routes: list[BaseRoute] = [
            Route(path, partial(_answered, handler), methods=[method]) for method, path, handler in table
        ]
        routes += [
            Route(f'{top}/{{id}}/{{rest:path}}', _cannot, methods=['GET', 'POST', 'PUT'])
            for top in ('/sandboxes', '/v2/sandboxes')
        ]
        services = make_services(self._service.settings.body_bytes)
        return [*routes, *(Mount(path, app=app) for path, app in services.items())]

    # Sandboxes --------------------------------------------------------------------------------------------------------

    async def _create(self, request: Request) -> Response:
        wanted = await _parse(request, _NewSandbox)
        if wanted.template not in TEMPLATES:
            msg = f'there is no template {wanted.template[:100]!r}: this server has one system; leave it out'
            raise _RefusedRequest(404, msg)
        if wanted.iam or wanted.volumes:
            msg = 'this server has no identities and no volumes'
            raise _RefusedRequest(400, msg)
        service, owner = self._service, str(request.scope['owner'])

        async def make() -> HostedMachine:
            backend = await asyncio.to_thread(service.machine_backend)
            made = HostedMachine(backend, service.settings, owner)
            made.template, made.metadata = wanted.template or TEMPLATES[1], wanted.metadata
            await made.start(seconds=wanted.timeout, env=wanted.env)
            return made

        name, made = await service.registry.start(owner, make)
        return JSONResponse(_access(name, made), 201)

    async def _list(self, request: Request) -> Response:
        query = request.query_params
        metadata = dict(parse_qsl(query.get('metadata', '')))
        found = [
            _describe(name, hosted)
            for name, hosted in self._service.registry.of(request.scope['owner'])
            if isinstance(hosted, HostedMachine) and not hosted.ended and metadata.items() <= hosted.metadata.items()
        ]
        if 'state' in query and 'running' not in ','.join(query.getlist('state')):
            found = []
        start, size = _number(query.get('nextToken'), 0), _number(query.get('limit'), 100)
        rest = len(found) > start + size
        return JSONResponse(found[start : start + size], headers={'x-next-token': str(start + size)} if rest else None)

    async def _get(self, request: Request) -> Response:
        name, machine = self._find(request)
        return JSONResponse({**_describe(name, machine), **_access(name, machine)})

    async def _kill(self, request: Request) -> Response:
        name, _ = self._find(request)
        await self._service.registry.remove(name)
        return Response(status_code=204)

    async def _set_timeout(self, request: Request) -> Response:
        _, machine = self._find(request)
        machine.set_seconds((await _parse(request, _Timeout)).timeout)
        return Response(status_code=204)

    async def _connect(self, request: Request) -> Response:
        name, machine = self._find(request)
        machine.set_seconds(max(machine.seconds_left, (await _parse(request, _Timeout)).timeout))
        return JSONResponse(_access(name, machine))

    def _find(self, request: Request) -> tuple[str, HostedMachine]:
        name = str(request.path_params['id'])
        found = self._service.registry.find(request.scope['owner'], name)
        if not isinstance(found, HostedMachine) or found.ended:
            raise _RefusedRequest(404, NOT_FOUND)
        return name, found

    # Files ------------------------------------------------------------------------------------------------------------

    async def _check(self, request: Request) -> Response:
        return Response(status_code=204)

    async def _download(self, request: Request) -> Response:
        machine, path = _machine(request), request.query_params.get('path', '')
        first = expect(await machine.ask('read', path, 0, CHUNK), bytes)

        async def content() -> AsyncGenerator[bytes]:
            data, offset = first, 0
            while data:
                yield data
                offset += len(data)
                data = expect(await machine.ask('read', path, offset, CHUNK), bytes) if len(data) == CHUNK else b''

        return StreamingResponse(content(), media_type='application/octet-stream', headers=AS_FILE)

    async def _upload(self, request: Request) -> Response:
        machine, path = _machine(request), request.query_params.get('path', '')
        written: list[object] = []
        if not request.headers.get('content-type', '').startswith('multipart/'):
            data = await request.body()
            if request.headers.get('content-encoding') == 'gzip':
                data = _unpacked(data, self._service.settings.body_bytes)
            written.append(await _write(machine, path, data))
        else:
            async with request.form() as form:
                parts = [part for part in form.getlist('file') if isinstance(part, UploadFile)]
                written += [await _write(machine, path or part.filename or '', await part.read()) for part in parts]
        return JSONResponse(
            [{key: entry[key] for key in ('name', 'type', 'path')} for entry in map(fields_in, written)]
        )

    # The code interpreter ---------------------------------------------------------------------------------------------

    def _contexts_of(self, request: Request) -> Contexts:
        machine = _machine(request)
        return self._contexts.setdefault(machine, Contexts(machine))

    async def _execute(self, request: Request) -> Response:
        wanted = await _parse(request, _Execution)
        _require_python(wanted.language)
        context = self._contexts_of(request).find(wanted.context or '')
        lines = _lines(context, wanted.code, wanted.env or {})
        return StreamingResponse(lines, media_type='application/x-ndjson', headers={'Cache-Control': 'no-store'})

    async def _make_context(self, request: Request) -> Response:
        wanted = await _parse(request, _NewContext)
        _require_python(wanted.language)
        entry = fields_in(await _machine(request).ask('stat', wanted.cwd))
        name, context = self._contexts_of(request).make(expect(entry.get('path'), str))
        return JSONResponse(_describe_context(name, context))

    async def _list_contexts(self, request: Request) -> Response:
        return JSONResponse([_describe_context(*item) for item in self._contexts_of(request).all()])

    async def _restart_context(self, request: Request) -> Response:
        await self._contexts_of(request).find(request.path_params['id']).restart()
        return Response(status_code=204)

    async def _remove_context(self, request: Request) -> Response:
        await self._contexts_of(request).remove(request.path_params['id'])
        return Response(status_code=204)


async def _answered(handler: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    try:
        return await handler(request)
    except (BodyRefused, _RefusedRequest) as refused:
        return error(refused.status, str(refused))
    except TooMany as refused:
        return error(429, str(refused), {'Retry-After': str(int(refused.retry_after) or 1)})
    except MachineError as failed:
        return error(_STATUS.get(failed.code, 400), str(failed))
    except MachineGone:
        return error(502, NOT_FOUND)
    except SandboxError as failed:
        return error(500, str(failed))


async def _cannot(request: Request) -> Response:
    return error(501, f'this server cannot do that: {request.method} {request.url.path[:100]}')


async def _parse(request: Request, model: type[M]) -> M:
    try:
        return parse_request(model, await request.body())
    except ValueError as invalid:
        raise _RefusedRequest(400, str(invalid)) from None


def _machine(request: Request) -> HostedMachine:
    return expect(request.scope['machine'], HostedMachine)


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else default


def _access(name: str, machine: HostedMachine) -> dict[str, object]:
    """How a sandbox is reached. The SDK of the code interpreter sends the second token, where others send the first."""
    named = {'templateID': machine.template, 'sandboxID': name, 'clientID': 'habilis', 'envdVersion': VERSION}
    return {**named, 'envdAccessToken': machine.token, 'trafficAccessToken': machine.token}


def _describe(name: str, machine: HostedMachine) -> dict[str, object]:
    limits = machine.settings.limits
    return {
        'templateID': machine.template,
        'sandboxID': name,
        'clientID': 'habilis',
        'envdVersion': VERSION,
        'startedAt': datetime.fromtimestamp(machine.created, UTC).isoformat(),
        'endAt': datetime.fromtimestamp(time.time() + machine.seconds_left, UTC).isoformat(),
        'cpuCount': 1,
        'memoryMB': limits.memory_mb,
        'diskSizeMB': 0,
        'state': 'running',
        'metadata': machine.metadata,
        'allowInternetAccess': False,
    }


async def _write(machine: HostedMachine, path: str, data: bytes) -> object:
    if not path:
        msg = 'path: which file is to be written?'
        raise _RefusedRequest(400, msg)
    entry = await machine.ask('write', path, 0, data[:CHUNK])
    for offset in range(CHUNK, len(data), CHUNK):
        entry = await machine.ask('write', path, offset, data[offset : offset + CHUNK])
    return entry


def _unpacked(data: bytes, limit: int) -> bytes:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        unpacked = unpacker.decompress(data, limit)
    except zlib.error as failed:
        raise _RefusedRequest(400, f'the body is not gzip: {failed}') from None
    if unpacker.unconsumed_tail:
        raise _RefusedRequest(413, f'the body may have {limit:,} bytes')
    return unpacked


def _require_python(language: str | None) -> None:
    if language not in (None, 'python'):
        raise _RefusedRequest(400, f'this server runs Python, not {language[:50]}; commands.run runs other programs')


def _describe_context(name: str, context: CodeContext) -> dict[str, str]:
    return {'id': name, 'language': 'python', 'cwd': context.cwd}


async def _lines(context: CodeContext, code: str, env: dict[str, str]) -> AsyncGenerator[str]:
    """A cell as lines of JSON: output, results, an error; and how many cells have run."""
    try:
        async with aclosing(context.run(code, env)) as told:
            async for item in told:
                if item is None:
                    yield _line('keepalive')
                elif isinstance(item, Cell):
                    for result in _results(item):
                        yield _line('result', **result)
                    if item.error is not None:
                        named = {'name': item.error.type, 'value': item.error.message}
                        yield _line('error', **named, traceback=item.error.traceback or str(item.error))
                else:
                    yield _line(item[0], text=item[1], timestamp=time.time_ns())
    except SandboxError as failed:
        yield _line('error', name='SandboxError', value=str(failed), traceback=str(failed))
    yield _line('number_of_executions', execution_count=context.cells)


def _line(kind: str, **fields: object) -> str:
    return json.dumps({'type': kind, **fields}) + '\n'


def _results(cell: Cell) -> list[dict[str, object]]:
    """What was displayed, each in its forms, and the value of the cell."""
    results: list[dict[str, object]] = []
    last = len(_ORDER)
    for display in cell.displays:
        name = _FORMATS.get(display.mime, 'text')
        place = _ORDER.index(name)
        if place <= last or name in ('png', 'text'):  # a figure or a text has no other form
            results.append({})
        results[-1][name] = _text(display)
        last = place
    if cell.text is not None:
        # Plain data has no other form than its text; the forms of other values come last.
        is_form = cell.value is None and results and 'text' not in results[-1]
        results.append({**(results.pop() if is_form else {}), 'text': cell.text, 'is_main_result': True})
    return results


def _text(display: Display) -> str:
    return display.data if isinstance(display.data, str) else base64.b64encode(display.data).decode()
