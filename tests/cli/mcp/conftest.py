"""A place without settings, keys and models, for commands that look for them."""

import os
from pathlib import Path

import pytest

from habilis.core.folders import cache_folder
from tests.place import Place


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty folder to be in. The cache is the usual one: building an interpreter takes too long for a test."""
    cache = cache_folder()
    here = Place(tmp_path, monkeypatch)
    monkeypatch.setenv('HABILIS_CACHE', os.fspath(cache))
    return here
