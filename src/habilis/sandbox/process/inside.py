"""The first code that runs inside: confines the process, then handles requests.

    python -I -S -c '…' '{"confinement": {…}, "stdout": 5}'

Only the standard library is imported before the process is confined; nothing of it that keeps functions for files, such
as `pathlib` and `tempfile`: `places.py` replaces them.
"""

import contextlib
import gc
import importlib
import json
import os
import socket
import sys
from collections.abc import Generator
from typing import Any

from habilis.sandbox.guest import tracebacks, tunnels
from habilis.sandbox.guest.__main__ import main
from habilis.sandbox.process import places
from habilis.sandbox.process.confinement import Confinement, confine
from habilis.sandbox.process.kernel_calls import send
from habilis.sandbox.process.twins import Twins


def start() -> None:
    """Confine this process, say that it is ready, and handle requests."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    for number, descriptor in enumerate(settings.pop('channel', ())):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if proxy := settings.pop('proxy', None):
        settings['proxy_port'] = _open_proxy(**proxy)
    control = settings.pop('control', None)
    listener = confine(Confinement(**settings.pop('confinement')))
    if control is not None:
        send(control, b'listener', [listener] if listener is not None else [])
    if listener is not None:
        os.close(listener)
    if settings['places']:
        _use_places(settings['places'])
    if packages := settings.pop('preload'):
        _import_packages(packages)
    gc.freeze()  # no collection of a cell goes through what was imported
    gc.enable()
    sys.stdout.write('ready\n')
    sys.stdout.flush()
    main(settings, None if control is None else lambda channel: Twins(control, channel).fork)


def _use_places(found: dict[str, str]) -> None:
    """Without mounts: let Python find the folders, and the kernel know which files are the user's."""
    places.install(found)
    workspace, packages = ([f'{found[path]}/'] if path in found else [] for path in ('/workspace', '/packages'))
    tracebacks.USER_PATHS += (*workspace, *packages)
    tracebacks._LIBRARY_PATHS += (*packages,)  # pyright: ignore[reportPrivateUsage]


def _open_proxy(channel: int, local: bool) -> int:
    """Give the host a socket that listens in this sandbox's own network. Returns its port."""
    with socket.create_server((tunnels.PROXY, 0), backlog=128) as listener, socket.socket(fileno=channel) as host:
        socket.send_fds(host, [b'.'], [listener.fileno()])
        port = int(listener.getsockname()[1])
    os.environ.update(tunnels.environment(port, local=local))
    return port


def _import_packages(folder: str) -> None:
    """Import the packages that were asked for, not those that they need, as far as they have the name of a module."""
    with _without_output():
        sys.path.append(folder)
        for name in os.listdir(folder):
            if os.path.exists(f'{folder}/{name}/REQUESTED'):
                with contextlib.suppress(BaseException):
                    importlib.import_module(name.partition('-')[0].lower())
        sys.path.remove(folder)


@contextlib.contextmanager
def _without_output() -> Generator[None]:
    """Discard what is written to stdout, the channel to the host, and to stderr: no cell has written it."""
    kept, nowhere = (os.dup(1), os.dup(2)), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    yield
    sys.stdout.flush()
    sys.stderr.flush()
    for descriptor, copy in zip((1, 2), kept, strict=True):
        os.dup2(copy, descriptor)
        os.close(copy)
    os.close(nowhere)
