"""A web of its own on 127.0.0.1: pages of any kind, and a search engine that speaks SearXNG's JSON protocol over them.

with LoopbackWeb(sites.generated()) as web:
    web.address('/rivers/kelda.html')   # its URL
    web.settings                        # arguments of `load_settings`: this search engine, this host allowed
    web.requests                        # what was asked for
"""

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self, TypedDict
from urllib.parse import parse_qs, urlsplit

RESULTS_PER_PAGE = 10
_TAG = re.compile(r'<(script|style|head)\b.*?</\1>|<!--.*?-->|<[^<>]*>', re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r'<title>(.*?)</title>', re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the server says for a path."""

    body: bytes = b''
    type: str | None = 'text/html; charset=utf-8'
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    chunks: Callable[[], Iterable[bytes]] | None = None
    """Sent instead of the body, without a length, for bodies that are slow or have no end."""

    @property
    def is_searchable(self) -> bool:
        return self.status == 200 and bool(self.body) and (self.type or '').startswith('text/html')


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b''


def article(title: str, *paragraphs: str, date: str = '2025-03-04', author: str = 'Ann Lee') -> Answer:
    """A page with one article, and navigation around it."""
    text = '\n'.join(f'<p>{paragraph}</p>' for paragraph in paragraphs)
    return html(f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="author" content="{author}"><meta property="article:published_time" content="{date}"></head>
<body><nav><a href="/">Home</a> <a href="/about.html">About us</a></nav>
<article><h1>{title}</h1>
{text}
</article><footer>All rights reserved. <a href="/imprint.html">Imprint</a></footer></body></html>""")


def html(text: str) -> Answer:
    """A page of any HTML."""
    return Answer(body=text.encode())


def redirect(target: str, status: int = 302) -> Answer:
    """A redirect, to a path or a URL."""
    return Answer(status=status, headers={'Location': target}, type=None)


class LoopbackSettings(TypedDict):
    """Arguments of `load_settings`."""

    searxng_url: str
    web_hosts: str


class LoopbackWeb:
    """The server. Each request has a thread, so that slow bodies delay no others."""

    def __init__(self, pages: Mapping[str, Answer] | None = None) -> None:
        self.pages = dict(pages or {})
        """Answers by path, with the query if there is one. May be changed at any time."""

        self.any_query: dict[str, Answer] = {}
        """Answers by path, whatever the query is."""

        self.requests: list[Asked] = []
        self.is_stopping = threading.Event()
        self._server = _Server(('127.0.0.1', 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={'poll_interval': 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self._server.server_address[1]}'

    @property
    def settings(self) -> LoopbackSettings:
        """Arguments of `load_settings` with which `Web` searches here, and may fetch from here."""
        return {'searxng_url': self.url, 'web_hosts': '127.0.0.1'}

    def address(self, path: str) -> str:
        return f'{self.url}{path}'

    def asked(self, path: str) -> list[Asked]:
        """The requests for a path."""
        return [each for each in self.requests if each.path == path]

    def search(self, query: str, page: int) -> list[dict[str, str]]:
        """Pages that have a word of the query; those with more of them, and more often, first."""
        words = set(re.findall(r'\w+', query.lower()))
        found: list[tuple[int, int, str, str, str]] = []
        for path, answer in self.pages.items():
            if not answer.is_searchable:
                continue
            source = answer.body.decode('utf-8', 'replace')
            title = match.group(1) if (match := _TITLE.search(source)) else path
            text = ' '.join(_TAG.sub(' ', source[:100_000]).split())
            told = re.findall(r'\w+', f'{title} {text}'.lower())
            if hits := words & set(told):
                found.append((-len(hits), -sum(told.count(word) for word in hits), path, title, text[:200]))
        found.sort()
        first = (page - 1) * RESULTS_PER_PAGE
        return [
            {'title': title, 'url': self.address(path), 'content': text, 'engine': 'loopback'}
            for _, _, path, title, text in found[first : first + RESULTS_PER_PAGE]
        ]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_stopping.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are what many of these pages are for."""


def _handler(web: LoopbackWeb) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def do_GET(self) -> None:
            size = int(self.headers.get('Content-Length') or 0)
            request = Asked(
                method=self.command, path=self.path, headers=dict(self.headers.items()), body=self.rfile.read(size)
            )
            web.requests.append(request)
            answer = web.pages.get(self.path) or web.any_query.get(urlsplit(self.path).path)
            if answer is None and urlsplit(self.path).path == '/search':
                answer = _search_answer(web, parse_qs(urlsplit(self.path).query))
            with contextlib.suppress(OSError):  # the client has hung up
                self._send(answer or Answer(status=404, body=b'no such page', type='text/plain'))

        do_POST = do_GET  # noqa: N815 - the name that the base class wants

        def _send(self, answer: Answer) -> None:
            tag = answer.headers.get('ETag')
            unchanged = tag is not None and self.headers.get('If-None-Match') == tag
            self.send_response(304 if unchanged else answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.type is not None:
                self.send_header('Content-Type', answer.type)
            if answer.chunks is None or unchanged:
                body = b'' if unchanged else answer.body
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            self.close_connection = True
            self.send_header('Connection', 'close')
            self.end_headers()
            for chunk in answer.chunks():
                if web.is_stopping.is_set():
                    return
                self.wfile.write(chunk)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the terminal."""

    return Handler


def _search_answer(web: LoopbackWeb, query: Mapping[str, list[str]]) -> Answer:
    """As SearXNG answers, which refuses JSON with 403 unless it is asked for by name."""
    if query.get('format') != ['json']:
        return Answer(status=403, body=b'forbidden', type='text/plain')
    words, page = ' '.join(query.get('q', [''])), int(query.get('pageno', ['1'])[0])
    found = {'query': words, 'number_of_results': 0, 'results': web.search(words, page)}
    return Answer(body=json.dumps(found).encode(), type='application/json')


def endless(piece: bytes, seconds: float = 0.0) -> Callable[[], Iterable[bytes]]:
    """The chunks of a body without an end, with a pause after each."""

    def chunks() -> Iterable[bytes]:
        while True:
            yield piece
            time.sleep(seconds)

    return chunks
