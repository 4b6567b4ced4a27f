"""Import times, each measured in a new process."""

from benchmarks.fresh_process import run_python
from benchmarks.measurement import Sample, summarize
from habilis.core.errors import AgentError

PACKAGE = 'import habilis'
AGENT = 'from habilis import Agent'
FIRST_REQUEST = """
from habilis.models import conversion
from habilis.models.connection import Target, connect
connect(Target(provider='openai', model='bench', url='http://127.0.0.1:9/v1', key='none', seconds=1.0))
"""
"""Imports of the first request to a hosted model: the model layer and the SDK."""

_PROGRAM = """
import time
{before}
started = time.perf_counter()
{statements}
print(time.perf_counter() - started)
"""


def import_time(statements: str, repeats: int, *, before: str = '') -> Sample:
    """Seconds for these statements in a new process, with a warm file system cache."""
    _measure(statements, before)
    return summarize([_measure(statements, before) for _ in range(repeats)])


def _measure(statements: str, before: str) -> float:
    program = _PROGRAM.format(before=before, statements=statements)
    return float(run_python(program, what='imports in a new process', error=AgentError))
