"""Run Python in a new process, so that a measurement does not depend on what this process has done."""

import subprocess
import sys
from pathlib import Path

from habilis.core.errors import HabilisError

ROOT = Path(__file__).parents[1]
"""The working directory of a new process, which imports `benchmarks` from it."""


def run_python(code: str, *, what: str, error: type[HabilisError]) -> str:
    """Output of a Python program. Raises `error` with the last line of its stderr if it fails."""
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f'{what}: {last_line(done.stderr)}'
        raise error(msg)
    return done.stdout


def last_line(stderr: str) -> str:
    """The last line of an error output, which usually names the error."""
    return (stderr.strip().splitlines() or ['no error message'])[-1]
