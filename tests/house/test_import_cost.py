"""`import habilis` is cheap: a program that imports it and does nothing pays nearly nothing."""

import json
import subprocess
import sys
from typing import TypedDict

import pytest

CPU_SECONDS = 0.05

HEAVY = frozenset(
    {
        'asyncio',
        'cloudpickle',
        'componentize_py',
        'concurrent',
        'ctypes',
        'httpx',
        'importlib.metadata',
        'inspect',
        'json',
        'multiprocessing',
        'numpy',
        'pydantic',
        'pydantic_ai',
        'rich',
        'socket',
        'sqlite3',
        'ssl',
        'subprocess',
        'typer',
        'wasmtime',
    }
)

PROBE = """
import sys, time
before = set(sys.modules)
start = time.process_time()
import habilis
seconds = time.process_time() - start
added = sorted(set(sys.modules) - before)
import json
print(json.dumps({'seconds': seconds, 'modules': added}))
"""


class Cost(TypedDict):
    """What one import did."""

    seconds: float
    modules: list[str]


def cost() -> Cost:
    """Import Habilis in a fresh process."""
    child = subprocess.run([sys.executable, '-I', '-c', PROBE], capture_output=True, text=True, check=True, timeout=600)
    return json.loads(child.stdout)


@pytest.fixture(scope='module')
def costs() -> list[Cost]:
    return [cost() for _ in range(5)]


def test_importing_habilis_loads_nothing_heavy(costs: list[Cost]) -> None:
    loaded = set(costs[0]['modules'])
    assert 'habilis' in loaded
    assert not loaded & HEAVY


def test_importing_habilis_loads_no_room(costs: list[Cost]) -> None:
    assert {name for name in costs[0]['modules'] if name.startswith('habilis')} == {'habilis', 'habilis._version'}


def test_importing_habilis_stays_under_50_ms_of_cpu(costs: list[Cost]) -> None:
    assert min(cost['seconds'] for cost in costs) < CPU_SECONDS
