"""Access control as an ASGI middleware: keys, host names, rate limits."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from habilis.server.connections import address_group
from habilis.server.settings import HttpSettings, is_loopback

COOKIE = 'habilis-key'
"""Where a browser keeps its key: it cannot send headers with everything it loads."""

MAX_BUCKETS = 10_000
LINGER_SECONDS = 2.0
"""How long the rest of a body is received that is refused."""


class RateLimit:
    """A bucket of requests per caller, which fills steadily."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._burst = 2 * per_second
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> float:
        """Count a request. Returns 0, or the seconds after which there is room for it."""
        now = time.monotonic()
        level, then = self._buckets.pop(caller, (self._burst, now))
        level = min(self._burst, level + (now - then) * self._per_second)
        wait = 0.0 if level >= 1 else (1 - level) / self._per_second
        self._buckets[caller] = (level if wait else level - 1), now
        if len(self._buckets) > MAX_BUCKETS:
            del self._buckets[next(iter(self._buckets))]  # the one that was used least recently
        return wait


class Callers(Protocol):
    """The callers of another protocol, which has its own paths and its own proofs."""

    def serves(self, path: str) -> bool:
        """Whether a path is one of this protocol."""
        ...

    def identify(self, scope: Scope, headers: Headers) -> tuple[str | None, Response | None]:
        """The owner of a request, and the refusal if there is none."""
        ...


class AccessRefused(Exception):
    """A request is not let through."""


def _refusal(status: int, error: Exception) -> Response:
    return JSONResponse({'error': str(error)}, status)


class Access:
    """Lets a request through if its key, its host name and its rate are right. The caller is `scope['owner']`."""

    def __init__(
        self,
        app: ASGIApp,
        settings: HttpSettings,
        *,
        open_paths: Collection[str],
        others: Callers | None = None,
        refuse: Callable[[int, Exception], Response] = _refusal,
    ) -> None:
        """`open_paths` need no key; `refuse` makes the answer to a request that is not let through."""
        self._app = app
        self._open_paths = open_paths
        self._settings = settings
        self._others = others
        self._refuse = refuse
        self._rate = RateLimit(settings.requests_per_second)
        self._requests: Counter[str | None] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request."""
        if scope['type'] not in ('http', 'websocket'):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refuse_host(headers) or self._refuse_caller(scope, headers)
        if refusal is not None:
            await _refuse(refusal, scope, receive, send)
            return
        owner = scope['owner']
        self._requests[owner] += 1
        try:
            await self._app(scope, self._limited(scope, headers, receive), self._while_let_in(scope, headers, send))
        except KeyRevoked:
            await send({'type': 'http.response.body'})
        finally:
            self._requests[owner] -= 1
            if not self._requests[owner]:
                del self._requests[owner]

    def _refuse_host(self, headers: Headers) -> Response | None:
        """A page in a browser may call a service on this machine by a name of its own: see DNS rebinding."""
        if is_loopback(self._settings.host) and not is_loopback(_host_name(headers.get('host', ''))):
            return self._error(403, 'this service is for this machine: call it as localhost or 127.0.0.1')
        origin = headers.get('origin')
        if origin is not None and _netloc(origin) != headers.get('host'):
            return self._error(403, 'calls from pages of other sites are refused')
        return None

    def _refuse_caller(self, scope: Scope, headers: Headers) -> Response | None:
        if self._others is not None and self._others.serves(scope['path']):
            owner, refusal = self._others.identify(scope, headers)
        else:
            owner, refusal = self._identify(scope, headers)
        client = scope.get('client') or ('unknown', 0)
        wait = self._rate.take(owner or f'from {address_group(client[0])}')
        if wait:
            return self._error(
                429, f'too many requests; try again in {wait:.1f} s', {'Retry-After': str(int(wait) + 1)}
            )
        if owner and self._requests[owner] >= self._settings.per_caller:
            return self._error(429, f'this key has {self._settings.per_caller} requests at once', {'Retry-After': '1'})
        scope['owner'] = owner
        return refusal

    def _identify(self, scope: Scope, headers: Headers) -> tuple[str | None, Response | None]:
        scheme, _, key = headers.get('authorization', '').partition(' ')
        if scheme.lower() != 'bearer':
            key = cookie_parser(headers.get('cookie', '')).get(COOKIE, '')
        owner = self._settings.owner(key.strip() or None)
        if owner is not None or scope['path'] in self._open_paths:
            return owner, None
        return None, self._error(401, 'a key is needed: Authorization: Bearer KEY', {'WWW-Authenticate': 'Bearer'})

    def _error(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
        response = self._refuse(status, AccessRefused(message))
        response.headers.update(headers or {})
        return response

    def _while_let_in(self, scope: Scope, headers: Headers, send: Send) -> Send:
        """Send an answer as long as its caller is let in: a stream may be open for days."""
        owner = scope['owner']
        if (
            owner is None
            or scope['type'] != 'http'
            or (self._others is not None and self._others.serves(scope['path']))
        ):
            return send

        async def send_some(message: Message) -> None:
            if message.get('more_body', False) and self._identify(scope, headers)[0] != owner:
                raise KeyRevoked
            await send(message)

        return send_some

    def _limited(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """Receive a body of the allowed size, in the allowed time."""
        if scope['type'] != 'http':
            return receive
        left = self._settings.body_bytes
        declared = headers.get('content-length', '0')
        if declared.isascii() and declared.isdigit() and int(declared) > left:
            left = -1
        end = time.monotonic() + self._settings.body_seconds

        is_complete = False

        async def receive_some() -> Message:
            nonlocal left, is_complete
            if is_complete:
                return await receive()  # the end of the connection, however long the answer takes
            message: Message = {}
            if left >= 0:
                try:
                    async with asyncio.timeout(max(0.0, end - time.monotonic())):
                        message = await receive()
                except TimeoutError:
                    raise BodyRefused(408, f'the body took longer than {self._settings.body_seconds:g} s') from None
                is_complete = not message.get('more_body', False)
                left -= len(message.get('body', b''))
            if left < 0:
                if not is_complete:
                    await _drop_rest(receive)
                raise BodyRefused(413, f'the body may have {self._settings.body_bytes:,} bytes')
            return message

        return receive_some


async def _drop_rest(receive: Receive) -> None:
    """Receive the rest of a body for a moment: a client that still sends would see a reset instead of the refusal."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get('more_body', False):
                pass


class KeyRevoked(Exception):
    """The caller is no longer let in."""


class BodyRefused(Exception):
    """The body of a request is too large or too slow."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _host_name(host: str) -> str:
    return host.rpartition(']')[0] + ']' if host.startswith('[') else host.partition(':')[0]


def _netloc(origin: str) -> str | None:
    """The host and port of an address; None if it is not one."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


async def _refuse(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope['type'] == 'http':
        await response(scope, receive, send)
        return
    head = {'type': 'websocket.http.response.start', 'status': response.status_code, 'headers': response.raw_headers}
    await send(head)
    await send({'type': 'websocket.http.response.body', 'body': response.body})
