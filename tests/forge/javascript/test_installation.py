"""QuickJS comes from the npm registry of this machine, and only if it is what was pinned."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.checks.verification import verify
from tests.forge.javascript.samples import double


class Registry:
    """Serves something else under any path."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.paths.append(self.path)
                self.send_response(200)
                self.send_header('Content-Length', '5')
                self.end_headers()
                self.wfile.write(b'other')

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    running = Registry()
    thread = threading.Thread(target=running.server.serve_forever, kwargs={'poll_interval': 0.01})
    thread.start()
    monkeypatch.setenv('HABILIS_CACHE', str(tmp_path / 'cache'))
    monkeypatch.setenv('NPM_CONFIG_OFFLINE', 'false')
    monkeypatch.setenv('NPM_CONFIG_REGISTRY', f'http://127.0.0.1:{running.server.server_port}/npm/')
    yield running
    running.server.shutdown()
    thread.join()
    running.server.server_close()


async def test_another_file_is_refused(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(
        ForgeError, match=r'JavaScript tools need QuickJS \(568\.8 kB\), which is not installed: .*5 bytes'
    ):
        await verify(double())
    assert registry.paths[0].startswith('/npm/quickjs-wasi/-/quickjs-wasi-')
    assert not list((tmp_path / 'cache').rglob('*.wasm'))


async def test_offline_one_line_says_what_to_do(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('NPM_CONFIG_OFFLINE', 'true')
    with pytest.raises(ForgeError, match='npm is set to work offline; install it once with NPM_CONFIG_OFFLINE=false'):
        await verify(double())
    monkeypatch.setenv('NPM_CONFIG_OFFLINE', 'false')
    monkeypatch.setenv('NPM_CONFIG_REGISTRY', 'http://127.0.0.1:9/npm')
    with pytest.raises(
        ForgeError, match=r'no network: .* Check the network and the settings of npm, then try again'
    ) as e:
        await verify(double())
    assert '\n' not in str(e.value)
    assert registry.paths == []
