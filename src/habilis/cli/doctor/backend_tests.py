"""Tests of backends other than the default one: what a user would do with them first. None takes long."""

import contextlib
import gc
import importlib.util
import shutil
import warnings
from collections.abc import Callable, Generator
from pathlib import Path

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.files.temporary_folders import temporary_folder
from habilis.sandbox.session import SyncSandbox

ENGINE_SECONDS = 5
NATIVE = 'pydantic_core'
"""A package with native code that Habilis itself needs: nothing has to be downloaded."""

_PACKAGES = (NATIVE, 'typing_extensions')
_CELLS = {
    'a cell': ('20 + 1', 21),
    f'a native package ({NATIVE})': (f'import {NATIVE}\n{NATIVE}.from_json("[1, 2]")', [1, 2]),
}
_COMMAND = ('import subprocess\nsubprocess.run(["sh", "-c", "echo $((6 * 7))"], capture_output=True).stdout', b'42\n')


def run_process_test() -> tuple[str, str]:
    """Run a cell, a native package and a command in `process`.

    Returns what was run, and what to do if there are no commands. Raises `SandboxError` for what failed.
    """
    with (
        _native_packages() as folder,
        SyncSandbox.create('process', packages=[folder], limits=Limits(seconds=30)) as box,
    ):
        reason = box.sandbox.why_no_processes
        cells = _CELLS if reason else {**_CELLS, 'a command': _COMMAND}
        for what, (code, expected) in cells.items():
            cell = box.run(code)
            if cell.error is not None or cell.value != expected:
                msg = f'{what} failed: {cell.error or f"{cell.text} instead of {expected!r}"}'
                raise SandboxError(msg)
    return f'ran {", ".join(cells)}{"; cannot run commands" if reason else ""}', reason


def ask_docker_engine() -> tuple[str, str]:
    """Ask the Docker engine for its version. Raises `BackendNotFound` if none answers."""
    from habilis.sandbox.docker.engine import DockerEngine

    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ResourceWarning)  # the SDK forgets its socket if nobody answers
        try:
            return f'engine {DockerEngine(seconds=ENGINE_SECONDS).version}', ''
        except BackendNotFound as error:
            problem = str(error)
        gc.collect()
    raise BackendNotFound(problem)


BACKEND_TESTS: dict[str, Callable[[], tuple[str, str]]] = {
    'process': run_process_test,
    'docker': ask_docker_engine,
}


@contextlib.contextmanager
def _native_packages() -> Generator[Path]:
    """A folder with a package that has native code, and with those that it needs: copies of the installed ones."""
    folder, remove = temporary_folder()
    try:
        for name in _PACKAGES:
            spec = importlib.util.find_spec(name)
            assert spec is not None
            assert spec.origin is not None
            source = Path(spec.origin)
            if source.name == '__init__.py':
                shutil.copytree(source.parent, folder / name)
            else:
                shutil.copy(source, folder)
        yield folder
    finally:
        remove()
