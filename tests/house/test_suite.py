"""The tests themselves: a failure ends one test only, and what cannot be tested is named."""

import subprocess
import sys
from pathlib import Path

from tests.house.repository import ROOT

FAILING = """
import gc

class Parsing:
    def __init__(self):
        self.me = self

    def __del__(self):
        compile('(1 + 2) * 3', 'x', 'eval', flags=1024)

def test_failing():
    gc.set_threshold(300)
    for _ in range(200):
        Parsing()
    assert [] == [1]

"""
MUCH_SOURCE = '\n'.join(f'def function_{number}(a, b):\n    return a + {number} * b' for number in range(500))
SKIPPED = """
from tests.requirements import missing

def test_one():
    missing('rg')

def test_two():
    missing('rg')

def test_three():
    missing('docker')
"""


def run_tests(folder: Path, source: str, **variables: str) -> 'subprocess.CompletedProcess[str]':
    """Run a file of tests with the settings of this suite."""
    (folder / 'test_sample.py').write_text(source)
    command = [sys.executable, '-m', 'pytest', '-p', 'tests.conftest', '-p', 'no:cacheprovider', '--rootdir', folder]
    environment = {'PATH': '/usr/bin:/bin', 'PYTHONPATH': str(ROOT), **variables}
    return subprocess.run([*command, folder], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_failure_does_not_end_the_run_when_the_collector_meets_its_description(tmp_path: Path) -> None:
    done = run_tests(tmp_path, FAILING + MUCH_SOURCE + '\ndef test_passing(): pass\n')
    assert '1 failed, 1 passed' in done.stdout, done.stdout + done.stderr


def test_what_is_missing_is_counted_with_the_line_that_installs_it(tmp_path: Path) -> None:
    done = run_tests(tmp_path, SKIPPED)
    assert done.returncode == 0
    assert '    2 tests: needs ripgrep: apt-get install ripgrep\n' in done.stdout, done.stdout
    assert '    1 test: needs a Docker engine: apt-get install docker.io, and start dockerd\n' in done.stdout


def test_in_continuous_integration_what_is_missing_is_a_failure(tmp_path: Path) -> None:
    done = run_tests(tmp_path, SKIPPED, CI='true')
    assert '3 failed' in done.stdout, done.stdout
