"""The server that both frameworks ask. That it really answers is for the tests that have the weights."""

from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from evals.server import NoServer, model_server, served_model


@pytest.fixture
def answering() -> Generator[Callable[[int, bytes], str]]:
    """A server that gives this answer to everything."""
    servers: list[ThreadingHTTPServer] = []

    def start(status: int, body: bytes) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert self.path == '/v1/models'
                self.send_response(status)
                self.send_header('content-length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        servers.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        return f'http://127.0.0.1:{server.server_port}/v1'

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_model_is_asked_for_by_the_name_that_its_server_gives_it(
    answering: Callable[[int, bytes], str],
) -> None:
    url = answering(200, b'{"data": [{"id": "tiny.gguf"}, {"id": "other"}]}')
    assert served_model(url) == served_model(f'{url}/') == 'tiny.gguf'


@pytest.mark.parametrize(
    ('status', 'body', 'complaint'),
    [
        (503, b'{"error": "loading"}', 'has no model .* status 503'),
        (200, b'{"data": []}', 'has no model'),
        (200, b'<html>', 'no model server answers'),
        (200, b'[]', 'no model server answers'),
        (200, b'{"data": null}', 'no model server answers'),
        (200, b'{"data": [{}]}', 'no model server answers'),
    ],
)
def test_what_is_no_model_server_is_said(
    answering: Callable[[int, bytes], str], status: int, body: bytes, complaint: str
) -> None:
    with pytest.raises(NoServer, match=complaint):
        served_model(answering(status, body))


def test_weights_that_are_none_end_the_server_at_once(tmp_path: Path) -> None:
    weights = tmp_path / 'notes.gguf'
    weights.write_bytes(b'GGUF, says this text, but it is none')
    with pytest.raises(NoServer, match='ended at once'), model_server(weights):
        pass
