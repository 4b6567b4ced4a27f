"""What importing costs: a process that has just started times it itself."""

import subprocess
import sys

from habilis.cli.bench.measure import Sample, sample
from habilis.core.errors import AgentError

PACKAGE = 'import habilis'
AGENT = 'from habilis import Agent'
FIRST_REQUEST = """
from habilis.models import conversion
from habilis.models.connection import Target, connect
connect(Target(provider='openai', model='bench', url='http://127.0.0.1:9/v1', key='none', seconds=1.0))
"""
"""What the first request to a hosted model does before it sends anything: the model layer, and the SDK."""

_TIMED = """
import time
{before}
started = time.perf_counter()
{statements}
print(time.perf_counter() - started)
"""


def loading(statements: str, repeats: int, *, before: str = '') -> Sample:
    """Seconds for these statements in a new process, once the files are in the cache of the system."""
    _once(statements, before)
    return sample([_once(statements, before) for _ in range(repeats)])


def _once(statements: str, before: str) -> float:
    program = _TIMED.format(before=before, statements=statements)
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f'a fresh process could not import: {(done.stderr.strip().splitlines() or ["no reason given"])[-1]}'
        raise AgentError(msg)
    return float(done.stdout)
