"""A folder with public data in small, and a server that names its model."""

import json
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

QUESTIONS = [
    {'question': 'Two hens lay three eggs each. How many eggs are there?', 'answer': 6},
    {'question': 'A loaf of 12 slices is shared by 5. How many slices does each get?', 'answer': 2.4},
]
PROBLEMS = [
    {'task_id': 11, 'text': 'Write a function to double.', 'tests': ['assert double(2) == 4'], 'setup': ''},
    {'task_id': 12, 'text': 'Write a function to halve.', 'tests': ['assert halve(HALF) == 1'], 'setup': 'HALF = 2'},
]


@pytest.fixture
def public_data(tmp_path: Path) -> Path:
    """A folder with two tasks of each public set."""
    for name, rows in (('gsm8k-2.jsonl', QUESTIONS), ('mbpp-2.jsonl', PROBLEMS)):
        (tmp_path / name).write_text(''.join(f'{json.dumps(row)}\n' for row in rows), encoding='utf-8')
    return tmp_path


@pytest.fixture
def answering() -> Generator[Callable[[int, bytes], str]]:
    """Start a server that gives one answer to everything."""
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


@pytest.fixture
def model_url(answering: Callable[[int, bytes], str]) -> str:
    """The address of a server with the model `tiny.gguf`."""
    return answering(200, b'{"data": [{"id": "tiny.gguf"}]}')
