"""An empty cache, and a server that has weights."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.models.local.weights_server import WeightsServer, registry_environment


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder, empty."""
    folder = tmp_path / 'cache'
    monkeypatch.setenv('HABILIS_CACHE', str(folder))
    return folder


@pytest.fixture
def server(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WeightsServer]:
    """Hub and registry on loopback; the catalogue names one model there, `tiny`."""
    with WeightsServer() as running:
        for name, value in registry_environment(running.url).items():
            monkeypatch.setenv(name, value)
        use_sources(running, tmp_path, monkeypatch, 'hub', 'registry')
        yield running


def use_sources(
    server: WeightsServer, folder: Path, monkeypatch: pytest.MonkeyPatch, *sources: str, sha256: str = ''
) -> None:
    """Have a catalogue in which `tiny` comes from these."""
    path = folder / f'{"-".join(sources)}{sha256[:4]}.toml'
    monkeypatch.setenv('HABILIS_CATALOGUE', str(server.catalogue(path, sources=sources, sha256=sha256)))
