"""A web server of this process, with articles that are always the same."""

import random
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_WORDS = 'river valley bridge mill flood harbour village chronicle winter trade stone council road market'.split()
_PARAGRAPHS = 40


def page(number: int) -> bytes:
    """An article of some 20 kB, with navigation around it."""
    chance = random.Random(number)
    paragraphs = ''.join(f'<p>{" ".join(chance.choices(_WORDS, k=60)).capitalize()}.</p>' for _ in range(_PARAGRAPHS))
    menu = ''.join(f'<li><a href="/{other}.html">Page {other}</a></li>' for other in range(40))
    return (
        f'<!doctype html><html><head><title>Page {number}</title><meta name="author" content="Ann Lee">'
        f'<meta property="article:published_time" content="2025-03-04"></head><body><nav><ul>{menu}</ul></nav>'
        f'<article><h1>Page {number}</h1>{paragraphs}</article><footer>Imprint</footer></body></html>'
    ).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self) -> None:
        """Answer for /NUMBER.html; there is no robots.txt."""
        name = self.path.strip('/').removesuffix('.html')
        body = page(int(name)) if name.isdecimal() else b''
        self.send_response(200 if body else 404)
        self.send_header('Content-Type', 'text/html; charset=utf-8')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal."""


@contextmanager
def served() -> Generator[str]:
    """The address of the server."""
    with ThreadingHTTPServer(('127.0.0.1', 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'http://127.0.0.1:{server.server_address[1]}'
        server.shutdown()
