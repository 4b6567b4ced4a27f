"""Fixtures of the chat."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from habilis.assistant.shared_folders import remember_share
from habilis.core.folders import cache_folder
from tests.cli.chat.people import Chats
from tests.models.protocol_server import ProtocolServer
from tests.place import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A folder, with settings, journal and memory of its own, and the usual cache."""
    cache = cache_folder()
    here = Place(tmp_path, monkeypatch)
    monkeypatch.setenv('HABILIS_CACHE', os.fspath(cache))
    remember_share(here.folder, 'no')
    return here


@pytest.fixture
def server() -> Generator[ProtocolServer]:
    """A model server."""
    with ProtocolServer() as running:
        yield running


@pytest.fixture
def chats(place: Place, monkeypatch: pytest.MonkeyPatch) -> Chats:
    """Chats with a scripted model."""
    monkeypatch.setenv('HABILIS_EMBEDDER', 'off')
    return Chats(monkeypatch)
