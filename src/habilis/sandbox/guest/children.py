"""Processes that a cell starts. Forks have no channel to the host, and end where their parent would answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from habilis.sandbox.guest.bridge import Bridge
    from habilis.sandbox.guest.output import HostStream

_exit = os._exit
FORK = 'fork'
"""The request to fork the guest itself; see `process/twins.py`."""

is_twin = False
"""Whether the process that is being forked is another guest, which keeps its kernel."""


def detach_after_fork(bridge: Bridge, *streams: HostStream) -> Callable[[], None]:
    """Give forked processes the exit and streams of an ordinary one. Returns a function that ends such a process
    and does nothing in the first one."""
    detached = False
    posix: Any = sys.modules[os.name]

    def detach() -> None:
        nonlocal detached
        if is_twin:
            return
        detached = True
        bridge.send = _refuse
        os._exit = posix._exit = _exit
        for stream in streams:
            stream.pending.clear()  # the parent will send it
        sys.stdout, sys.stderr = _open_stream(1), _open_stream(2)

    def end_if_child() -> None:
        if detached:
            sys.stdout.flush()
            _exit(0)

    os.register_at_fork(after_in_child=detach)
    return end_if_child


def offer_python(packages: list[str]) -> None:
    """Let commands such as `python script.py` run this Python, with these folders of packages."""
    environment, folder = os.environ, os.path.dirname(sys.executable or '')
    searched = environment.get('PATH', os.defpath).split(os.pathsep)
    if folder and folder not in searched:
        environment['PATH'] = os.pathsep.join([folder, *searched])
    if packages:
        given = environment.get('PYTHONPATH')
        environment['PYTHONPATH'] = os.pathsep.join([*packages, *([given] if given else [])])
    environment.setdefault('PYTHONDONTWRITEBYTECODE', '1')  # as here: no caches in the workspace


def _open_stream(descriptor: int) -> TextIO:
    return open(descriptor, 'w', encoding='utf-8', buffering=1, closefd=False)


def _refuse(message: str) -> str:
    if message[:1] == 'l':  # where it is: the host follows the cell
        return ''
    msg = 'a process that a cell has started cannot use tools, input or the network of the sandbox'
    raise RuntimeError(msg)
