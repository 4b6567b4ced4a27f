"""The first process of a container: starts the guest, and ends the container with it, or when the host is gone.

It is carried into the image and imports only the standard library and the guest. As the first process it collects the
processes that cells have left behind, and no signal from inside the container can end it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

OUT_OF_MEMORY = 200
"""Exit code if the kernel ended the guest because of the memory limit. A signal n is 128 + n."""

_KILL_COUNTS = ('/sys/fs/cgroup/memory.events', '/sys/fs/cgroup/memory/memory.oom_control')


def main(settings: dict[str, Any]) -> None:
    """Run the guest in a child process; this one waits."""
    from habilis.sandbox.guest.__main__ import main as run_guest  # before the fork, so that both share its memory

    child = os.fork()
    if child == 0:
        run_guest(settings)
        os._exit(0)
    sys.exit(wait(child))


def wait(child: int) -> int:
    """The exit code of the guest; 0 as soon as the host has closed its end of the pipe."""
    told, tell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _wake)
    events = select.poll()
    events.register(0, 0)  # nothing but the hang-up
    events.register(told, select.POLLIN)
    while True:
        if (code := collect(child)) is not None:
            return code
        if any(descriptor == 0 for descriptor, _ in events.poll()):
            return 0
        os.read(told, 4096)


def _wake(number: int, frame: object) -> None:
    """That there is a handler makes Python write to the pipe."""


def collect(child: int) -> int | None:
    """Collect all processes that have ended; the exit code of the guest if it is among them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == child:
            return exit_code(os.waitstatus_to_exitcode(status))
        if pid == 0:
            return None


def exit_code(ended: int) -> int:
    """The exit code of the container for one of Python's `subprocess`."""
    if ended == -signal.SIGKILL and was_out_of_memory():
        return OUT_OF_MEMORY
    return 128 - ended if ended < 0 else ended


def was_out_of_memory() -> bool:
    """Whether the kernel has ended a process of this container; also if it does not say."""
    for path in _KILL_COUNTS:
        try:
            lines = Path(path).read_text(encoding='ascii').splitlines()
        except OSError:
            continue
        return 'oom_kill 0' not in lines
    return True
