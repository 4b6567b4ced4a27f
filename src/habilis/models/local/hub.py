"""Download of weights from a model hub: one file over HTTP, resumed after an interruption."""

import re
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPResponse
from typing import cast
from urllib.parse import urlsplit

from habilis._version import __version__
from habilis.models.local.catalogue import HubSource
from habilis.models.local.partial_file import PartialFile, SourceFailed

TIMEOUT_SECONDS = 15.0
"""Read timeout of the connection."""

MAX_CONNECTIONS = 20
"""Maximum number of connections. One that delivers nothing is an error at once."""

CHUNK = 1 << 18


def fetch(source: HubSource, file: PartialFile) -> None:
    """Download the missing rest of the file."""
    file.resume_from(min(file.on_disk, file.total))
    for _ in range(MAX_CONNECTIONS):
        before = file.offset
        if before == file.total:
            return
        problem = _continue(source, file)
        if file.offset <= before and problem is not None:
            raise problem
    if file.offset < file.total:
        msg = f'{_host(source)} interrupted the download too often'
        raise SourceFailed(msg)


def _continue(source: HubSource, file: PartialFile) -> SourceFailed | None:
    """Read until the end or an interruption. Returns the problem, in case nothing arrived."""
    host = _host(source)
    try:
        with _open(source, file.offset) as response:
            _check(response, file, host)
            while chunk := response.read1(CHUNK):
                file.write(chunk)
    except urllib.error.HTTPError as error:
        error.close()
        endless = 'infinite loop' in str(error.reason)  # urllib's message has three lines
        msg = f'{host} redirects in a loop' if endless else f'{host} returned {error.code} {error.reason}'
        return SourceFailed(msg)
    except (OSError, HTTPException) as error:
        reason = getattr(error, 'reason', None) or error
        msg = f'cannot reach {host} ({reason})'
        return SourceFailed(msg, network=True)
    return SourceFailed(f'{host} ended the download too early', network=True)


def _open(source: HubSource, offset: int) -> HTTPResponse:
    headers = {'User-Agent': f'habilis/{__version__}', 'Accept-Encoding': 'identity'}
    if offset:
        headers['Range'] = f'bytes={offset}-'
    request = urllib.request.Request(source.url, headers=headers)
    return cast('HTTPResponse', urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS))


def _check(response: HTTPResponse, file: PartialFile, host: str) -> None:
    """Check size and start offset of a response before reading it."""
    start = 0
    if response.status == 206:
        found = re.match(r'bytes (\d+)-', response.headers.get('Content-Range', ''))
        start = int(found[1]) if found else file.offset
    if start > file.offset:
        msg = f'{host} sent another range than requested'
        raise SourceFailed(msg)
    length = response.headers.get('Content-Length', '')
    if length.isdecimal() and start + int(length) != file.total:
        msg = f'{host} has a file of another size ({start + int(length):,} bytes, not {file.total:,})'
        raise SourceFailed(msg)
    file.resume_from(start)


def _host(source: HubSource) -> str:
    return urlsplit(source.url).netloc
