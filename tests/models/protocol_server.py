"""A real HTTP server on loopback that speaks the protocols of the providers, from recorded exchanges.

It records every request. Left alone it answers each with the recording of that protocol; or it is told what to
answer: errors, delays, silence, garbage, a stream that stops in the middle.
"""

import binascii
import json
import select
import socket
import struct
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

EXCHANGES = Path(__file__).parent / 'exchanges'
KINDS = ('plain', 'call', 'stream')

PATHS = {
    '/v1/chat/completions': 'openai',
    '/v1/responses': 'openai-responses',
    '/v1/messages': 'anthropic',
    '/openai/v1/chat/completions': 'groq',
    '/mistral/v1/chat/completions': 'mistral',
    '/api/v1/chat/completions': 'openrouter',
    '/ollama/v1/chat/completions': 'ollama',
    '/vllm/v1/chat/completions': 'vllm',
    '/llamacpp/v1/chat/completions': 'llamacpp',
}
"""Which protocol is spoken at which path; Google and Bedrock have the name of the model in theirs."""

BASES = {
    'openai': '/v1',
    'openai-responses': '/v1',
    'anthropic': '',
    'google': '',
    'mistral': '/mistral',
    'groq': '',
    'openrouter': '/api/v1',
    'bedrock': '',
    'ollama': '/ollama/v1',
    'vllm': '/vllm/v1',
    'llamacpp': '/llamacpp/v1',
}
"""The base url of each provider on this server."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    """With lower-case names."""

    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What to answer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    chunks: tuple[bytes, ...] = ()
    silent_before: bool = False
    """Accept the request and never answer."""

    silent_after: int | None = None
    """Send so many chunks and then nothing more."""

    cut: bool = False
    """Close the connection where the silence would begin."""

    until: threading.Event | None = None
    """Wait for this before answering."""


def answer_json(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A whole answer in JSON."""
    body = json.dumps(value).encode()
    return Answer(status=status, headers={'content-type': 'application/json', **(headers or {})}, chunks=(body,))


def answer_text(text: str, *, status: int = 200, content_type: str = 'text/html') -> Answer:
    """Any other answer."""
    return Answer(status=status, headers={'content-type': content_type}, chunks=(text.encode(),))


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A recorded exchange: what must be sent, what comes back, and what that means."""

    provider: str
    kind: str
    model: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    response: dict[str, Any]
    reply: dict[str, Any]

    def answer(self) -> Answer:
        """The recorded response as bytes."""
        headers: dict[str, str] = self.response['headers']
        if 'body' in self.response:
            return Answer(headers=headers, chunks=(json.dumps(self.response['body']).encode(),))
        events: list[dict[str, Any]] = self.response['events']
        if headers['content-type'] == 'application/vnd.amazon.eventstream':
            return Answer(headers=headers, chunks=tuple(aws_frame(event['type'], event['data']) for event in events))
        return Answer(headers=headers, chunks=tuple(server_sent_event(event) for event in events))


def exchange(provider: str, kind: str) -> Exchange:
    """Read one."""
    recorded = json.loads((EXCHANGES / f'{provider}-{kind}.json').read_text(encoding='utf-8'))
    request = recorded['request']
    return Exchange(
        provider=provider,
        kind=kind,
        model=recorded['model'],
        path=request['path'],
        headers=request['headers'],
        body=request['body'],
        response=recorded['response'],
        reply=recorded['reply'],
    )


def server_sent_event(event: Mapping[str, Any]) -> bytes:
    """One event of a stream over HTTP."""
    data = event['data'] if isinstance(event['data'], str) else json.dumps(event['data'])
    name = f'event: {event["type"]}\n' if 'type' in event else ''
    return f'{name}data: {data}\n\n'.encode()


def aws_frame(kind: str, data: object) -> bytes:
    """One message of Amazon's event stream: lengths and checksums around headers and a payload."""
    payload = json.dumps(data).encode()
    headers = b''.join(
        bytes([len(name)]) + name.encode() + b'\x07' + struct.pack('>H', len(value)) + value.encode()
        for name, value in (
            (':event-type', kind),
            (':content-type', 'application/json'),
            (':message-type', 'event'),
        )
    )
    prelude = struct.pack('>II', 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack('>I', binascii.crc32(prelude)) + headers + payload
    return message + struct.pack('>I', binascii.crc32(message))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server: '_Server'  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        fact = self.server.owner.facts.get(self.path)
        self._send(answer_json(fact) if fact is not None else answer_json({}, status=404))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get('content-length') or 0))
        if self.path in self.server.owner.facts or self.path.endswith('/api/show'):
            self.do_GET()
            return
        asked = Asked(path=self.path, headers={n.lower(): v for n, v in self.headers.items()}, body=body)
        owner = self.server.owner
        answer = owner.next_answer(asked)
        if answer.until:
            answer.until.wait(30)
        if answer.silent_before:
            self._wait_for_the_end()
            return
        try:
            self._send(answer)
        except (BrokenPipeError, ConnectionResetError):
            owner.hung_up.set()
            self.close_connection = True

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header('transfer-encoding', 'chunked')
        self.end_headers()
        for number, chunk in enumerate(answer.chunks):
            if number == answer.silent_after:
                break
            if chunk:
                self.wfile.write(f'{len(chunk):x}\r\n'.encode() + chunk + b'\r\n')
                self.wfile.flush()
        if answer.silent_after is None:
            self.wfile.write(b'0\r\n\r\n')
        elif answer.cut:
            self.close_connection = True
        else:
            self._wait_for_the_end()

    def _wait_for_the_end(self) -> None:
        """Say nothing until the client hangs up, or the server stops."""
        self.close_connection = True
        while not self.server.owner.stopping.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.02)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                self.server.owner.hung_up.set()
                return

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: 'ProtocolServer'

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is part of the tests."""


class ProtocolServer:
    """The server. A context manager; `url` is its address."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []
        self.hung_up = threading.Event()
        """Set when a client closed its connection while it was being answered."""

        self.facts: dict[str, object] = {}
        """What it says of itself and its models, by path. These requests are not recorded."""

        self.stopping = threading.Event()
        self._answers: list[Answer] = []
        self._server = _Server(('127.0.0.1', 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Without a path."""
        return f'http://127.0.0.1:{self._server.server_address[1]}'

    def base_url(self, provider: str) -> str:
        """Where that provider's protocol is spoken."""
        return self.url + BASES[provider]

    @property
    def last(self) -> Asked:
        """The newest request."""
        return self.requests[-1]

    def will_answer(self, *answers: Answer) -> None:
        """Answer with these, one by one; the last one again and again."""
        self._answers = list(answers)

    def next_answer(self, asked: Asked) -> Answer:
        """Record a request and choose what to answer."""
        self.requests.append(asked)
        if len(self._answers) > 1:
            return self._answers.pop(0)
        return self._answers[0] if self._answers else _recorded_answer(asked)

    def wait_until_hung_up(self, seconds: float = 10) -> bool:
        """Whether a client hung up, in the end."""
        return self.hung_up.wait(seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()


def _recorded_answer(asked: Asked) -> Answer:
    path = asked.path.partition('?')[0]
    if path.startswith('/model/'):
        provider, streams = 'bedrock', path.endswith('/converse-stream')
    elif path.startswith(('/v1beta/models/', '/v1/models/')):
        provider, streams = 'google', path.endswith(':streamGenerateContent')
    elif path in PATHS:
        provider, streams = PATHS[path], bool(asked.json.get('stream'))
    else:
        return answer_json({'error': {'message': f'nothing is at {path}'}}, status=404)
    has_functions = any(asked.json.get(name) for name in ('tools', 'toolConfig'))
    return exchange(provider, 'stream' if streams else 'call' if has_functions else 'plain').answer()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def wait_for_requests(server: ProtocolServer, count: int, seconds: float = 10) -> Iterable[Asked]:
    """The requests, once there are so many."""
    until = time.monotonic() + seconds
    while len(server.requests) < count and time.monotonic() < until:
        time.sleep(0.005)
    return server.requests
