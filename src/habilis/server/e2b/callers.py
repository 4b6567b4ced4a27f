"""Who calls by E2B's protocol: with a key, to manage sandboxes; or with the token of one, to use it."""

import hmac

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from habilis.server.e2b.machine import HostedMachine
from habilis.server.registry import SandboxRegistry
from habilis.server.settings import ServiceSettings

NOT_FOUND = 'the sandbox was not found'
"""The SDK takes an error with these words for a sandbox that has ended."""

_KEY_PATHS = ('/sandboxes', '/v2/sandboxes')
_MACHINE_PATHS = ('/process.Process', '/filesystem.Filesystem', '/files', '/health', '/execute', '/contexts')


class E2bCallers:
    """Finds the caller of a request."""

    def __init__(self, settings: ServiceSettings, registry: SandboxRegistry) -> None:
        self._settings = settings
        self._registry = registry

    def serves(self, path: str) -> bool:
        """Whether a path is one of this protocol."""
        return _is_below(path, _KEY_PATHS) or _is_below(path, _MACHINE_PATHS)

    def identify(self, scope: Scope, headers: Headers) -> tuple[str | None, Response | None]:
        """The owner of the request, and the refusal if there is none. The machine is `scope['machine']`."""
        if _is_below(scope['path'], _KEY_PATHS):
            owner = self._settings.owner(headers.get('x-api-key'))
            return owner, None if owner else error(401, 'unknown key; set E2B_API_KEY to a key of this server')
        machine = self._registry.get(headers.get('e2b-sandbox-id', ''))
        if not isinstance(machine, HostedMachine) or machine.ended:
            return None, error(502, NOT_FOUND)
        token = headers.get('x-access-token') or headers.get('e2b-traffic-access-token') or ''
        if not hmac.compare_digest(token.encode(), machine.token.encode()):
            return None, error(401, 'the access token is not that of the sandbox')
        scope['machine'] = machine
        return machine.owner, None


def error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """An error as the SDK reads it."""
    return JSONResponse({'code': status, 'message': message}, status, headers)


def _is_below(path: str, tops: tuple[str, ...]) -> bool:
    return any(path == top or path.startswith(f'{top}/') for top in tops)
