"""Other ways to run Python, each as its own documentation uses it. They are measured if they are installed."""

import importlib
import importlib.metadata
import subprocess
import sys
from typing import Any

from habilis.bench.docker import GET_AN_IMAGE, find_docker

CODE = '1 + 1'
ANSWER = 2


class WrongAnswer(Exception):
    """A peer that does not compute is not measured."""


class Peer:
    """One of them. `new` makes a fresh one and computes `1 + 1` in it; `later` computes it again in the same."""

    name: str
    isolation: str
    keeps_state = True
    is_slow = False
    """Takes tenths of a second; measured less often."""

    def absent(self) -> str | None:
        """Why it cannot be measured, and how to get it."""
        raise NotImplementedError

    def start(self) -> None:
        """What is done once in a process."""

    def stop(self) -> None:
        """Undo `start`."""

    def new(self) -> Any:
        """A fresh sandbox after its first result."""
        raise NotImplementedError

    def later(self, session: Any) -> None:
        """A second result in the same sandbox."""
        raise NotImplementedError

    def end(self, session: Any) -> None:
        """Close it."""

    def cycle(self) -> None:
        """New, first result, end."""
        self.end(self.new())


class Subprocess(Peer):
    """A fresh Python process for each result. Nothing keeps the code in."""

    name = 'subprocess'
    isolation = 'none: a process with the rights of the user'
    keeps_state = False

    def absent(self) -> str | None:
        return None

    def new(self) -> Any:
        _check(_output([sys.executable, '-c', f'print({CODE})']))


class DockerRun(Peer):
    """`docker run` with an image that is here."""

    name = 'docker run'
    isolation = 'container'
    keeps_state = False
    is_slow = True

    def __init__(self) -> None:
        self._image = ''

    def absent(self) -> str | None:
        found = find_docker()
        self._image = found.image
        if found.problem and not found.answers:
            return f'{found.problem}; with an engine: {GET_AN_IMAGE}'
        return found.problem or None

    def new(self) -> Any:
        command = ['docker', 'run', '--rm', '--network', 'none', self._image, 'python', '-c', f'print({CODE})']
        _check(_output(command))


class _Library(Peer):
    """A peer that is a package of Python."""

    distribution: str
    oldest = (3, 11)

    def absent(self) -> str | None:
        try:
            version = importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            if sys.version_info < self.oldest:
                return f'needs Python {".".join(map(str, self.oldest))} or newer, then: pip install {self.distribution}'
            return f'not installed: pip install {self.distribution}'
        self.name = f'{self.distribution} {version}'
        return None


class Pyeryx(_Library):
    """CPython in WebAssembly, like ours. A `Session` keeps its variables; a value comes back under `result`."""

    name = distribution = 'pyeryx'
    isolation = 'CPython in WebAssembly (wasmtime)'
    oldest = (3, 12)

    def start(self) -> None:
        self._eryx: Any = importlib.import_module('eryx')

    def new(self) -> Any:
        session = self._eryx.Session()
        self.later(session)
        return session

    def later(self, session: Any) -> None:
        _check(session.execute(f'result = {CODE}').result)


class Monty(_Library):
    """An interpreter of its own for a part of Python. A pool of processes is started once; a session takes one."""

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


class Smolagents(_Library):
    """An evaluator of syntax trees in the host's own process."""

    name = distribution = 'smolagents'
    isolation = 'none: "not a security sandbox" by its own words'

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
    """Those we know of."""
    return [Subprocess(), DockerRun(), Pyeryx(), Monty(), Smolagents()]


def _output(command: list[str]) -> int:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WrongAnswer((done.stderr.strip().splitlines() or [f'exit code {done.returncode}'])[-1])
    return int(done.stdout)


def _check(answer: object) -> None:
    if answer != ANSWER:
        msg = f'{CODE} gave {answer!r}'
        raise WrongAnswer(msg)
