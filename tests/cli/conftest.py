"""Fixtures of the command tests."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from habilis.sandbox.wasm.cache import compiled_component

Environment = dict[str, str]


@pytest.fixture(autouse=True, scope='session')
def component() -> None:
    """Build the component before the first test, so that no time limit includes it."""
    compiled_component()


@pytest.fixture
def fake_docker(tmp_path: Path) -> Callable[[str], Environment]:
    """An environment in which `docker` is the given shell script."""

    def make(script: str) -> Environment:
        command = tmp_path / 'bin' / 'docker'
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\n{script}\n')
        command.chmod(0o755)
        return {'PATH': f'{command.parent}{os.pathsep}{os.environ["PATH"]}'}

    return make
