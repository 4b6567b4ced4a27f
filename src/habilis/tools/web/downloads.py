"""Downloads from servers that nobody vouches for: which addresses, how often, how much, how long."""

import asyncio
import contextlib
import time
import zlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from email.message import Message
from typing import cast
from urllib.parse import urljoin

import httpcore2
import httpx2

from habilis._version import __version__
from habilis.sandbox.network import is_public, matches_host, resolve
from habilis.tools.web.page_cache import PageCache, StoredResponse
from habilis.tools.web.quoting import one_line
from habilis.tools.web.robots import MAX_BYTES as MAX_ROBOTS_BYTES
from habilis.tools.web.robots import NOTHING, RobotRules, parse_robots

AGENT = 'habilis'
"""Our name in robots.txt."""

USER_AGENT = f'{AGENT}/{__version__} (agent of a user; obeys robots.txt)'
MAX_REDIRECTS = 10
MAX_CONNECTIONS = 16
MAX_URL = 4000
ROBOTS_SECONDS = 3600.0
"""How long a robots.txt counts."""

_CONNECT_SECONDS = 10.0
_REDIRECTS = {301, 302, 303, 307, 308}


class PageError(Exception):
    """A page cannot be had; the message says why."""


@dataclass(frozen=True, kw_only=True)
class DownloadLimits:
    """Limits of one page, and of requests to one host."""

    bytes: int = 20 << 20
    """Maximum size, decompressed."""

    seconds: float = 30.0
    """Maximum time of one response."""

    per_host: int = 4
    """Maximum number of requests to one host at a time."""

    pace: float = 0.2
    """Minimum time between the starts of two requests to one host; a `Crawl-delay` of its robots.txt may be longer."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a server sent."""

    url: str
    type: str
    charset: str
    body: bytes


@dataclass(frozen=True)
class _Session:
    """The connections of one batch, on one event loop."""

    pool: httpcore2.AsyncConnectionPool
    hosts: dict[str, asyncio.Semaphore]
    robots: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))


class Downloads:
    """Fetches documents. `hosts` are the hosts of private networks that are allowed, as patterns."""

    def __init__(
        self, *, hosts: Sequence[str], limits: DownloadLimits, obeys_robots: bool, cache: PageCache | None
    ) -> None:
        self._hosts = tuple(host.lower() for host in hosts)
        self._limits = limits
        self._obeys_robots = obeys_robots
        self._cache = cache
        self._robots: dict[str, tuple[float, RobotRules]] = {}
        self._next: dict[str, float] = {}

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncGenerator[_Session]:
        """Connections for a batch of documents."""
        backend = _CheckedConnections(self._hosts)
        async with httpcore2.AsyncConnectionPool(max_connections=MAX_CONNECTIONS, network_backend=backend) as pool:
            yield _Session(pool, defaultdict(lambda: asyncio.Semaphore(self._limits.per_host)))

    async def get(self, session: _Session, address: str) -> Document:
        """A document, after redirects. Raises `PageError`."""
        for _ in range(MAX_REDIRECTS + 1):
            url = _checked_url(address)
            rules = await self._rules(session, url)
            if not rules.allow(url.raw_path.decode('ascii')):
                msg = 'the robots.txt of the site does not allow it'
                raise PageError(msg)
            response = await self._request(session, url, self._limits.bytes, delay=rules.delay)
            if response.status in _REDIRECTS and response.location:
                address = urljoin(str(url), response.location)
                continue
            if response.status != 200:
                msg = f'the server answered with HTTP status {response.status}'
                raise PageError(msg)
            kind = Message()
            kind['Content-Type'] = response.type or 'text/html'
            charset = kind.get_content_charset('')
            return Document(str(url), kind.get_content_type() if response.type else '', charset, response.body)
        msg = f'more than {MAX_REDIRECTS} redirects'
        raise PageError(msg)

    async def _rules(self, session: _Session, url: httpx2.URL) -> RobotRules:
        if not self._obeys_robots:
            return RobotRules()
        origin = str(url.copy_with(raw_path=b'/'))
        async with session.robots[origin]:
            known = self._robots.get(origin)
            if known is None or known[0] < time.monotonic():
                known = (time.monotonic() + ROBOTS_SECONDS, await self._read_robots(session, f'{origin}robots.txt'))
                self._robots[origin] = known
            return known[1]

    async def _read_robots(self, session: _Session, address: str) -> RobotRules:
        """As the RFC says: no file, no rules; a server that fails must be left alone."""
        for _ in range(MAX_REDIRECTS):
            url = _checked_url(address)
            response = await self._request(session, url, MAX_ROBOTS_BYTES, cut=True)
            if response.status in _REDIRECTS and response.location:
                address = urljoin(address, response.location)
                continue
            if response.status == 200:
                return parse_robots(response.body.decode('utf-8', 'replace'), AGENT)
            return NOTHING if response.status >= 500 else RobotRules()
        return RobotRules()

    async def _request(
        self, session: _Session, url: httpx2.URL, most: int, *, delay: float = 0.0, cut: bool = False
    ) -> '_Exchanged':
        async with session.hosts[url.host]:
            await self._keep_pace(url.host, delay)
            stored = await asyncio.to_thread(self._cache.get, str(url)) if self._cache else None
            try:
                async with asyncio.timeout(self._limits.seconds):
                    response = await _exchange(session.pool, url, stored, most, cut=cut)
            except TimeoutError:
                msg = f'it took longer than {self._limits.seconds:g} s'
                raise PageError(msg) from None
            except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
                msg = f'the connection failed: {one_line(str(error) or type(error).__name__, 200)}'
                raise PageError(msg) from None
        if response.status == 304 and stored is not None:
            return _Exchanged(200, type=stored.type, body=stored.body)
        if self._cache and response.status == 200 and response.is_storable:
            entry = StoredResponse(str(url), response.etag, response.modified, response.type, response.body)
            await asyncio.to_thread(self._cache.put, entry)
        return response

    async def _keep_pace(self, host: str, delay: float) -> None:
        now = time.monotonic()
        start = max(now, self._next.get(host, now))
        self._next[host] = start + max(self._limits.pace, delay)
        await asyncio.sleep(start - now)


@dataclass(frozen=True, slots=True)
class _Exchanged:
    status: int
    type: str = ''
    location: str = ''
    etag: str = ''
    modified: str = ''
    control: str = ''
    body: bytes = b''

    @property
    def is_storable(self) -> bool:
        return bool(self.etag or self.modified) and 'no-store' not in self.control.lower()


async def _exchange(
    pool: httpcore2.AsyncConnectionPool, url: httpx2.URL, stored: StoredResponse | None, most: int, *, cut: bool
) -> _Exchanged:
    """One request and its response. Neither cookies nor keys are sent."""
    headers: dict[bytes | str, bytes | str] = {
        'Host': url.netloc.decode('ascii'),
        'User-Agent': USER_AGENT,
        'Accept': 'text/html, application/xhtml+xml, application/pdf, text/*;q=0.9, */*;q=0.1',
        'Accept-Encoding': 'gzip, deflate',
        **({'If-None-Match': stored.etag} if stored and stored.etag else {}),
        **({'If-Modified-Since': stored.modified} if stored and stored.modified else {}),
    }
    target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    async with pool.stream('GET', target, headers=headers) as response:
        found = {name.decode('latin-1').lower(): value.decode('latin-1') for name, value in response.headers}
        has_body = response.status == 200
        return _Exchanged(
            response.status,
            type=found.get('content-type', ''),
            location=found.get('location', ''),
            etag=found.get('etag', ''),
            modified=found.get('last-modified', ''),
            control=found.get('cache-control', ''),
            body=await _body(response, found.get('content-encoding', ''), most, cut=cut) if has_body else b'',
        )


async def _body(response: httpcore2.Response, encoding: str, most: int, *, cut: bool) -> bytes:
    """The body, decompressed step by step: a small one may become a giant."""
    encoding = encoding.strip().lower()
    if encoding not in ('', 'identity', 'gzip', 'x-gzip', 'deflate'):
        msg = 'the server compressed it in a way that it was not asked for'
        raise PageError(msg)
    inflate = None if encoding in ('', 'identity') else zlib.decompressobj(zlib.MAX_WBITS | 32)
    body = bytearray()
    async for chunk in response.aiter_stream():
        try:
            body += chunk if inflate is None else inflate.decompress(chunk, most + 1 - len(body))
        except zlib.error:
            msg = 'its compressed data is damaged'
            raise PageError(msg) from None
        if len(body) > most:
            if cut:
                return bytes(body[:most])
            msg = f'it is larger than {most >> 20} MB'
            raise PageError(msg)
    return bytes(body)


def _checked_url(address: str) -> httpx2.URL:
    try:
        url = httpx2.URL(address[: MAX_URL + 1]).copy_with(fragment=None)
        is_valid = url.scheme in ('http', 'https') and bool(url.host) and not url.userinfo and len(address) <= MAX_URL
    except (httpx2.InvalidURL, ValueError, TypeError):
        is_valid, url = False, httpx2.URL()
    if not is_valid:
        msg = f'{one_line(address, 200)!r} is not a URL that can be fetched: it needs http or https, and no password'
        raise PageError(msg)
    return url


class _CheckedConnections(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses that were checked, not to the name: that may mean another address a moment later."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self._hosts = hosts
        self._inner = cast('httpcore2.AsyncNetworkBackend', httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: object = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve a name, check, connect to the first address that answers."""
        addresses = await asyncio.to_thread(self._addresses, host, port)
        for address in addresses[:-1]:
            with contextlib.suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):  # the next one may work
                return await self._inner.connect_tcp(address, port, _CONNECT_SECONDS / 2)
        return await self._inner.connect_tcp(addresses[-1], port, _CONNECT_SECONDS)

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = resolve(host, port)
        except OSError as error:
            msg = f'there is no host {one_line(host, 200)} ({error.strerror or error})'
            raise PageError(msg) from None
        if matches_host(host, port, self._hosts):
            return found
        if allowed := [each for each in found if is_public(each) or matches_host(each, port, self._hosts)]:
            return allowed
        shown = one_line(host, 200)
        meant = '' if shown == found[0] else f'{found[0]}, which is '
        msg = f'{shown} is {meant}not a public address; the setting web_hosts can allow it: web_hosts = ["{shown}"]'
        raise PageError(msg)
