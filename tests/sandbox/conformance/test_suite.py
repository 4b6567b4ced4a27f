"""The shipped suite against the shipped backend, and against a toy that shows how little a backend is."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from habilis.sandbox import backends
from habilis.sandbox.conformance.suite import IsolationConformance, SandboxConformance
from habilis.sandbox.contract import Guest, GuestSpec
from habilis.sandbox.host.pipe_guest import PipeGuest


class TestWasm(SandboxConformance):
    backend = 'wasm'


class TestWasmIsolation(IsolationConformance):
    backend = 'wasm'


class ToyBackend:
    """A plain process: right, and not safe."""

    isolation = 'none: a process of this user'

    def start(self, spec: GuestSpec) -> Guest:
        places = {mount.target: str(mount.source) for mount in spec.mounts}
        settings = json.dumps({'memory_mb': spec.limits.memory_mb, 'places': places})
        command = [sys.executable, '-m', 'habilis.sandbox.guest', settings]
        return PipeGuest(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))


@pytest.fixture(autouse=True, scope='module')
def _toy_is_registered() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    backends.register('toy', ToyBackend)
    yield
    backends.unregister('toy')


class TestToy(SandboxConformance):
    backend = 'toy'
