"""Run the benchmarks as a developer does."""

import subprocess
import sys
from collections.abc import Mapping

from tests.cli.process import environment
from tests.house.repository import ROOT


def python(*arguments: str, env: Mapping[str, str] | None = None) -> 'subprocess.CompletedProcess[str]':
    """Run Python in the root of the repository."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(env),
        capture_output=True,
        text=True,
        check=False,
    )


def benchmarks(*arguments: str, env: Mapping[str, str] | None = None) -> 'subprocess.CompletedProcess[str]':
    """Run `python -m benchmarks`."""
    return python('-m', 'benchmarks', *arguments, env=env)
