"""Other ways to run Python, used as their documentation shows. Measured if they are installed."""

import importlib
import subprocess
import sys
from typing import Any

from benchmarks.docker import PULL_IMAGE, find_docker
from benchmarks.fresh_process import last_line
from benchmarks.installation import PeerError, installed_version, why_missing
from benchmarks.sandbox.timings import ANSWER, CODE


class Peer:
    """A way to run Python. `new` creates a sandbox and computes `1 + 1` in it; `later` computes it again."""

    name: str
    isolation: str
    keeps_state = True
    is_slow = False
    """Takes tenths of a second; measured less often."""

    def unavailable(self) -> str | None:
        """Why it cannot be measured, and how to install it."""
        raise NotImplementedError

    def start(self) -> None:
        """Initialize once per process."""

    def stop(self) -> None:
        """Undo `start`."""

    def new(self) -> Any:
        """A new sandbox that has returned its first result."""
        raise NotImplementedError

    def later(self, session: Any) -> None:
        """Compute another result in the same sandbox."""
        raise NotImplementedError

    def end(self, session: Any) -> None:
        """Close the sandbox."""

    def cycle(self) -> None:
        """Create a sandbox, compute one result, close it."""
        self.end(self.new())


class Subprocess(Peer):
    """A new Python process per result, without isolation."""

    name = 'subprocess'
    isolation = 'none: a process with the rights of the user'
    keeps_state = False

    def unavailable(self) -> str | None:
        return None

    def new(self) -> Any:
        _check(_output([sys.executable, '-c', f'print({CODE})']))


class DockerRun(Peer):
    """`docker run` with a local image."""

    name = 'docker run'
    isolation = 'container'
    keeps_state = False
    is_slow = True

    def __init__(self) -> None:
        self._image = ''

    def unavailable(self) -> str | None:
        found = find_docker()
        self._image = found.image
        if found.problem and not found.version:
            return f'{found.problem}; with an engine: {PULL_IMAGE}'
        return found.problem or None

    def new(self) -> Any:
        command = ['docker', 'run', '--rm', '--network', 'none', self._image, 'python', '-c', f'print({CODE})']
        _check(_output(command))


class Library(Peer):
    """A peer that is a Python package."""

    distribution: str
    min_python = (3, 11)

    def unavailable(self) -> str | None:
        if reason := why_missing(self.distribution, min_python=self.min_python):
            return reason
        self.name = f'{self.distribution} {installed_version(self.distribution)}'
        return None


class Pyeryx(Library):
    """CPython in WebAssembly, like Habilis. A `Session` keeps its variables; `result` holds the value."""

    name = distribution = 'pyeryx'
    isolation = 'CPython in WebAssembly (wasmtime)'
    min_python = (3, 12)

    def start(self) -> None:
        self._eryx: Any = importlib.import_module('eryx')

    def new(self) -> Any:
        session = self._eryx.Session()
        self.later(session)
        return session

    def later(self, session: Any) -> None:
        _check(session.execute(f'result = {CODE}').result)


class Monty(Library):
    """An interpreter for a subset of Python. A pool of processes is started once; a session takes one."""

    name = distribution = 'pydantic-monty'
    isolation = 'own interpreter of a Python subset, in a reused process'

    def start(self) -> None:
        self._pool: Any = importlib.import_module('pydantic_monty').Monty(min_processes=2)
        self._pool.__enter__()

    def stop(self) -> None:
        self._pool.__exit__(None, None, None)

    def new(self) -> Any:
        session = self._pool.checkout()
        session.__enter__()
        self.later(session)
        return session

    def later(self, session: Any) -> None:
        _check(session.feed_run(CODE))

    def end(self, session: Any) -> None:
        session.__exit__(None, None, None)


class Smolagents(Library):
    """An evaluator of syntax trees in the process of the host."""

    name = distribution = 'smolagents'
    isolation = 'none: its documentation says "not a security sandbox"'

    def start(self) -> None:
        self._executor: Any = importlib.import_module('smolagents.local_python_executor').LocalPythonExecutor

    def new(self) -> Any:
        session = self._executor([])
        session.send_tools({})
        self.later(session)
        return session

    def later(self, session: Any) -> None:
        _check(session(CODE).output)


def all_peers() -> list[Peer]:
    """All known peers."""
    return [Subprocess(), DockerRun(), Pyeryx(), Monty(), Smolagents()]


def _output(command: list[str]) -> int:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PeerError(last_line(done.stderr or f'exit code {done.returncode}'))
    return int(done.stdout)


def _check(answer: object) -> None:
    if answer != ANSWER:
        msg = f'{CODE} returned {answer!r}'
        raise PeerError(msg)
