"""MCP over streamable HTTP, with the access rules of the sandbox service."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from habilis.server.access import Access, BodyRefused
from habilis.server.mcp.protocol import McpService
from habilis.server.mcp.settings import McpSettings

if TYPE_CHECKING:
    from habilis.server.mcp.apps import App

PATH = '/mcp'


def make_mcp_app(settings: McpSettings, apps: 'Sequence[App]' = ()) -> ASGIApp:
    """The server as an ASGI application."""
    return http_app(McpService(settings, apps), settings)


def http_app(server: McpService, settings: McpSettings) -> ASGIApp:
    """The application for a server."""
    service = settings.service
    manager = StreamableHTTPSessionManager(
        server,
        session_idle_timeout=service.idle_seconds,
        max_request_body_size=service.body_bytes,
        max_sessions=service.sandboxes,
    )
    routes = [Route(PATH, endpoint=_Endpoint(manager))]
    return Access(Starlette(routes=routes, lifespan=lambda _app: manager.run()), service, open_paths=())


class _Endpoint:
    """Tells the SDK who calls, so that nobody uses the session of somebody else."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        scope['user'] = AuthenticatedUser(AccessToken(token='', client_id=scope['owner'], scopes=[]))
        try:
            await self._manager.handle_request(scope, receive, send)
        except BodyRefused as error:
            await JSONResponse({'error': str(error)}, error.status)(scope, receive, send)
