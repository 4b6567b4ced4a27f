"""Weights from a model hub: one file over HTTP, taken up again where it was cut."""

import re
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPResponse
from typing import cast
from urllib.parse import urlsplit

from habilis._version import __version__
from habilis.models.local.catalogue import HubSource
from habilis.models.local.incoming import Incoming, SourceFailed

SECONDS = 15.0
"""Without a byte, after which the connection counts as dead."""

TRIES = 20
"""How often a connection may be cut, as long as each brought something."""

CHUNK = 1 << 18


def fetch(source: HubSource, incoming: Incoming) -> None:
    """Add what is missing of the file."""
    incoming.go_on_from(min(incoming.on_disk, incoming.total))
    for _ in range(TRIES):
        before = incoming.offset
        if before == incoming.total:
            return
        problem = _read_on(source, incoming)
        if incoming.offset <= before and problem is not None:
            raise problem
    if incoming.offset < incoming.total:
        msg = f'{_host(source)} cut the connection again and again'
        raise SourceFailed(msg)


def _read_on(source: HubSource, incoming: Incoming) -> SourceFailed | None:
    """Read until the end or a cut. Returns what went wrong, for the case that nothing came."""
    host = _host(source)
    try:
        with _open(source, incoming.offset) as response:
            _check(response, incoming, host)
            while chunk := response.read1(CHUNK):
                incoming.write(chunk)
    except urllib.error.HTTPError as error:
        error.close()
        endless = 'infinite loop' in str(error.reason)  # `urllib` says so in three lines
        msg = f'{host} redirects in a circle' if endless else f'{host} answers {error.code} {error.reason}'
        return SourceFailed(msg)
    except (OSError, HTTPException) as error:
        reason = getattr(error, 'reason', None) or error
        msg = f'{host} cannot be reached ({reason})'
        return SourceFailed(msg, network=True)
    return SourceFailed(f'{host} ended the file too early', network=True)


def _open(source: HubSource, offset: int) -> HTTPResponse:
    headers = {'User-Agent': f'habilis/{__version__}', 'Accept-Encoding': 'identity'}
    if offset:
        headers['Range'] = f'bytes={offset}-'
    request = urllib.request.Request(source.url, headers=headers)
    return cast('HTTPResponse', urllib.request.urlopen(request, timeout=SECONDS))


def _check(response: HTTPResponse, incoming: Incoming, host: str) -> None:
    """Before the first byte: is this the file, and from where on?"""
    start = 0
    if response.status == 206:
        found = re.match(r'bytes (\d+)-', response.headers.get('Content-Range', ''))
        start = int(found[1]) if found else incoming.offset
    if start > incoming.offset:
        msg = f'{host} sent another part than was asked for'
        raise SourceFailed(msg)
    length = response.headers.get('Content-Length', '')
    if length.isdecimal() and start + int(length) != incoming.total:
        msg = f'{host} has a file of another size ({start + int(length):,} bytes, not {incoming.total:,})'
        raise SourceFailed(msg)
    incoming.go_on_from(start)


def _host(source: HubSource) -> str:
    return urlsplit(source.url).netloc
