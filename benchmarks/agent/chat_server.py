"""A minimal chat completion server that streams one reply, with the first chunk sent at once."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from benchmarks.fresh_process import ROOT

CHUNKS = ('The', ' answer', ' is', ' 4.')
_HEAD = b'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
_PROGRAM = 'from benchmarks.agent.chat_server import serve; serve()'


@contextlib.contextmanager
def chat_server() -> Generator[str]:
    """Start the server in a process of its own, so that it does not wait for our GIL. Yields its URL."""
    command = [sys.executable, '-c', _PROGRAM]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f'http://127.0.0.1:{int(process.stdout.readline())}/v1'
        finally:
            process.stdin.close()


def serve() -> None:
    """Entry point of the server process: serve until stdin is closed."""
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


class Handler(BaseHTTPRequestHandler):
    """Replies to every POST with the same stream."""

    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Send the headers with the first chunk, then one chunk per write."""
        self.rfile.read(int(self.headers['content-length']))
        first, *others = _events()
        self.wfile.write(_HEAD + _chunk(first))
        for event in others:
            self.wfile.write(_chunk(event))
        self.wfile.write(b'0\r\n\r\n')

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""


def _events() -> list[bytes]:
    deltas: list[tuple[dict[str, str], str | None]] = [
        *(({'role': 'assistant', 'content': text}, None) for text in CHUNKS),
        ({}, 'stop'),
    ]
    return [*(_event(delta, finish) for delta, finish in deltas), b'data: [DONE]\n\n']


def _event(delta: dict[str, str], finish: str | None) -> bytes:
    body = {
        'id': 'bench',
        'object': 'chat.completion.chunk',
        'created': 1,
        'model': 'bench',
        'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}],
    }
    return f'data: {json.dumps(body)}\n\n'.encode()


def _chunk(data: bytes) -> bytes:
    return f'{len(data):x}\r\n'.encode() + data + b'\r\n'
