"""What a test needs beyond Python and its packages: programs, servers, the package registry.

Where one is missing the test is skipped, with the line that installs it; a summary at the end counts these lines. In
continuous integration all of them are there, so a test that lacks one fails.
"""

import os
import shutil
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from habilis.sandbox.process.bubblewrap import find_bubblewrap, why_unusable

INSTALLATION = {
    'namespaces': 'namespaces, which are refused here: in a container, use --security-opt seccomp=unconfined',
    'chromium': 'Chromium: apt-get install chromium',
    'curl': 'curl: apt-get install curl',
    'distributed': "Dask: .venv/bin/pip install -c constraints.txt -e '.[dask]'",
    'docker': 'a Docker engine: apt-get install docker.io, and start dockerd',
    'gradio': 'Gradio, in an environment of its own: make gradio',
    'git': 'git: apt-get install git',
    'node': 'programs of npm, and Node 20 or newer: make node',
    'pyarrow': "pyarrow: .venv/bin/pip install -c constraints.txt -e '.[parquet]'",
    'postgres': 'a PostgreSQL server: apt-get install postgresql',
    'ray': "Ray: .venv/bin/pip install -c constraints.txt -e '.[ray]'",
    'redis-server': 'a Redis server: apt-get install redis-server',
    'registry': 'the package registries, which cannot be reached from here',
    'rg': 'ripgrep: apt-get install ripgrep',
    'ssh-keygen': 'ssh-keygen: apt-get install openssh-client',
    'torch': "torch: .venv/bin/pip install -c constraints.txt -e '.[hf]'",
    'strace': 'strace, and the right to use it: apt-get install strace',
}
"""What each requirement is and, after a colon, how to get it."""

PREFIX = 'needs '
NODE = Path(__file__).with_name('node')


def missing(requirement: str, detail: str = '') -> NoReturn:
    """Skip this test; in continuous integration it fails."""
    msg = PREFIX + INSTALLATION[requirement] + (f' ({detail})' if detail else '')
    if os.environ.get('CI'):
        pytest.fail(msg, pytrace=False)
    pytest.skip(msg)


def require(program: str) -> str:
    """Path of a program, without which this test is skipped."""
    return shutil.which(program) or missing(program)


def require_package(name: str) -> None:
    """Skip this test where a package of an extra is not installed."""
    if find_spec(name) is None:
        missing(name)


def require_node(program: str) -> list[str]:
    """The start of a command line with a program of npm, without which this test is skipped."""
    path = NODE / 'node_modules' / '.bin' / program
    if not path.exists():
        missing('node', program)
    node = shutil.which('node') or missing('node')
    return [node, '--import', (NODE / 'older_node.mjs').as_uri(), str(path)]


def require_namespaces() -> None:
    """Skip this test where a sandbox gets no namespaces: a container, or a rule of AppArmor, may refuse them."""
    program = find_bubblewrap()
    if program is None or why_unusable(program) is not None:
        missing('namespaces')


def summary(reasons: list[str]) -> list[str]:
    """One line for each reason to skip a test, the most frequent first."""
    counted = Counter(sorted(reasons)).most_common()
    return [f'{number:5} {"test" if number == 1 else "tests"}: {reason}' for reason, number in counted]
