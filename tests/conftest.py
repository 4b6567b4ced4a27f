"""Settings for every test."""

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Generator

import pytest
from hypothesis import settings

from tests import requirements

# A busy machine is slow, not wrong: hypothesis may take its time.
settings.register_profile('habilis', deadline=None)
settings.load_profile('habilis')

# Started in the background by a shell, a process ignores Ctrl-C, and so would the processes that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with contextlib.suppress(ValueError):  # not on the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests start the command some hundred times, and each worker reads all tests. Where nothing compiled is kept, that
# would be compiled anew each time.
os.environ.pop('PYTHONDONTWRITEBYTECODE', None)
sys.dont_write_bytecode = False

# The embedded model fetches llama.cpp from the npm registry, which the tests do not reach.
os.environ['NPM_CONFIG_OFFLINE'] = 'true'


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from what is collected: half a million objects, which stay.

    It takes a quarter of the time of collecting; and then a third of a second in every full collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Take back what a test leaves in the variables that Python reads when it starts: Ray sets PYTHONBREAKPOINT.

    With others than those it was started with, the nursery (`tests/cli/nursery.py`) can start no command: from the test
    of a cluster on, a worker would start Python anew for each command, which takes seconds.
    """
    before = _variables_of_python()
    try:
        return (yield)
    finally:
        for name in _variables_of_python().keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _variables_of_python() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(('PYTHON', 'LC_', 'LANG'))}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Describe a failure without the garbage collector.

    pytest parses the source of what failed. If the collector runs a finalizer meanwhile that parses something, too (any
    traceback that is formatted does), CPython 3.11 raises `SystemError: AST constructor recursion depth mismatch`: the
    whole run would end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count what was not tested here, and say how to change that."""
    reports: list[pytest.TestReport] = terminalreporter.stats.get('skipped', [])
    reasons = [
        str(report.longrepr[2]).removeprefix('Skipped: ') for report in reports if isinstance(report.longrepr, tuple)
    ]
    if reasons:
        terminalreporter.section('not tested here')
        for line in requirements.summary(reasons):
            terminalreporter.line(line)


@pytest.fixture(scope='session', autouse=True)
def _no_run_is_kept_in_the_data_folder_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:  # pyright: ignore[reportUnusedFunction]
    """Agents keep their runs by default; those of the tests are kept in a folder that goes with them."""
    os.environ['HABILIS_DATA'] = str(tmp_path_factory.mktemp('data'))
