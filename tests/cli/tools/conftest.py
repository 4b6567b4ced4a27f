"""A library with a few tools, and the command that works with it."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from habilis.forge.library.library import Library
from tests.cli.process import habilis
from tests.forge.samples import double, fourfold

Tools = Callable[..., CompletedProcess[str]]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = Library(tmp_path / 'library')
    made.add(double(), origin='user', request='Double it.', tests=1)
    made.add(fourfold(), tests=1)
    return made


@pytest.fixture
def tools(library: Library) -> Tools:
    """Runs `habilis tools` with the library."""

    def run(command: str, *arguments: str, **options: Any) -> CompletedProcess[str]:
        return habilis('tools', command, '--library', str(library.folder), *arguments, **options)

    return run


def data(done: CompletedProcess[str]) -> Any:
    """What a command printed as JSON."""
    assert done.stderr == '' or done.returncode == 0 or done.stdout, done.stderr
    return json.loads(done.stdout)
