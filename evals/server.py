"""An OpenAI-compatible server for the weights of the embedded model, for frameworks that cannot load them.

`python -m evals.server WEIGHTS PORT` runs the server alone, until its stdin is closed.
"""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CONTEXT = 16_384
SLOTS = 2
"""Prompts kept in the cache: two frameworks may ask the same server in turns."""

START_SECONDS = 120.0
"""Time to load the weights."""


class NoServer(Exception):
    """The server did not start, or does not answer."""


@contextlib.contextmanager
def model_server(weights: Path, *, seconds: float = START_SECONDS) -> Generator[str]:
    """Run a server on this machine for the time of the block, and yield its address. Raises `NoServer`."""
    port = _free_port()
    with subprocess.Popen(
        _command(weights, port), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            url = f'http://127.0.0.1:{port}/v1'
            _wait(process, url, time.monotonic() + seconds)
            yield url
        finally:
            process.terminate()
            process.communicate()


def served_model(url: str) -> str:
    """The name of the server's model. Raises `NoServer`."""
    try:
        status, answer = _get(f'{url.rstrip("/")}/models')
        names = [str(model['id']) for model in json.loads(answer)['data']] if status == 200 else []
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        msg = f'no model server answers at {url}: {error}'
        raise NoServer(msg) from None
    if not names:
        msg = f'the server at {url} has no model (it answered with status {status})'
        raise NoServer(msg)
    return names[0]


def _command(weights: Path, port: int) -> Sequence[str]:
    return [sys.executable, '-m', 'evals.server', str(weights), str(port)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def _wait(process: 'subprocess.Popen[str]', url: str, deadline: float) -> None:
    """Wait until the weights are loaded. The log is short enough for a pipe that is not read meanwhile."""
    while True:
        with contextlib.suppress(NoServer):
            served_model(url)
            return
        if process.poll() is not None:
            assert process.stderr is not None
            said = process.stderr.read().strip().splitlines() or ['no error message']
            msg = f'the model server ended at once: {said[-1]}'
            raise NoServer(msg)
        if time.monotonic() > deadline:
            msg = 'the model server does not answer; is there enough memory for the weights?'
            raise NoServer(msg)
        time.sleep(0.2)


def _get(url: str) -> tuple[int, bytes]:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or '127.0.0.1', place.port, timeout=10)
    try:
        connection.request('GET', place.path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def serve(weights: str, port: int) -> None:
    """Serve until stdin is closed."""
    from habilis.models.local.cpu import core_count

    vendor: Any = import_module('xllamacpp')
    params = vendor.CommonParams()
    params.model.path = weights
    params.model_alias = {Path(weights).name}
    params.port = port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = core_count()  # as the embedded model
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * CONTEXT
    params.ui = False
    params.warmup = False
    params.verbosity = -1
    try:
        server = vendor.Server(params)  # it ends when the last reference is gone
    except RuntimeError as error:
        sys.exit(f'{weights} cannot be loaded: {error}')
    sys.stdin.read()
    del server


if __name__ == '__main__':
    serve(sys.argv[1], int(sys.argv[2]))
