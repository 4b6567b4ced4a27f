"""The sandbox service as an ASGI application."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp

from habilis.core.codec import NotPlain
from habilis.core.errors import SandboxError, WorkspaceFileNotFound
from habilis.sandbox.backends import backend
from habilis.sandbox.files.temporary_folders import temporary_folder
from habilis.server import openapi
from habilis.server.access import Access, BodyRefused, Callers
from habilis.server.guest_socket import serve_guest
from habilis.server.operations import OPERATIONS, BadRequest, NotThere, Operation, Service
from habilis.server.registry import SandboxRegistry, TooMany
from habilis.server.settings import ServiceSettings

OPEN_PATHS = frozenset({'/v1/health', '/openapi.json', '/docs'})
"""What needs no key."""


def make_app(settings: ServiceSettings) -> ASGIApp:
    """The service with these settings."""
    service = Service(
        settings=settings,
        registry=SandboxRegistry(settings),
        backend=lambda: backend(settings.backend, **settings.backend_settings),  # type: ignore[arg-type]
    )
    others: Callers | None = None
    document = openapi.document(OPERATIONS, 'Habilis sandboxes')
    page = openapi.page(OPERATIONS)
    routes: list[BaseRoute] = [
        Route(operation.path, _endpoint(service, operation), methods=[operation.method]) for operation in OPERATIONS
    ]
    routes += [
        WebSocketRoute('/v1/guests', partial(serve_guest, service)),
        Route('/openapi.json', partial(_show, JSONResponse(document))),
        Route('/docs', partial(_show, HTMLResponse(page))),
    ]

    if settings.e2b:
        from habilis.server.e2b.api import E2bApi  # which needs the SDK of E2B
        from habilis.server.e2b.callers import E2bCallers

        routes += E2bApi(service).routes()
        others = E2bCallers(settings, service.registry)
    else:
        hint = {'code': 404, 'message': "E2B's SDK was not expected here: start the server with --e2b"}
        routes.append(Route('/v2/sandboxes', partial(_show, JSONResponse(hint, 404)), methods=['GET', 'POST']))

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        await asyncio.to_thread(_remove_abandoned)
        sweeper = asyncio.create_task(service.registry.sweep())
        yield
        sweeper.cancel()
        await asyncio.gather(sweeper, return_exceptions=True)

    return Access(Starlette(routes=routes, lifespan=lifespan), settings, open_paths=OPEN_PATHS, others=others)


def _remove_abandoned() -> None:
    """Remove what killed processes have left: the first temporary folder of a process does, and may take long."""
    _, remove = temporary_folder()
    remove()


async def _show(response: Response, _request: Request) -> Response:
    return response


def _endpoint(service: Service, operation: Operation[Service]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return await operation.handler(service, request)
        except BodyRefused as error:
            return _error(error.status, error)
        except TooMany as error:
            return _error(429, error, {'Retry-After': str(int(error.retry_after) or 1)})
        except (NotThere, WorkspaceFileNotFound) as error:
            return _error(404, error)
        except (BadRequest, NotPlain, SandboxError, ValueError) as error:
            return _error(400, error)

    return endpoint


def _error(status: int, error: Exception, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({'error': str(error)}, status, headers)
