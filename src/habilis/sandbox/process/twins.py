"""A guest forks itself into namespaces of its own. Runs inside; the broker outside allows it and sets them up.

The request to fork comes through the channel of the guest, and what belongs to it through the control socket: settings,
and the descriptors of the new guest. A guest that has run no code yet (a zygote) stays where it is. One that has would
see the processes of the new guest, so it moves to new namespaces itself; what is left behind is a stopped process.
"""

import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from habilis.sandbox.guest import children
from habilis.sandbox.guest.__main__ import HostPipes
from habilis.sandbox.process.confinement import Confinement, confine_fork, drop_capabilities
from habilis.sandbox.process.kernel_calls import fork_into_namespaces, libc, receive, send

_DUMPABLE = 4
_LEFT_BEHIND = ['/bin/sleep', 'infinity']
_WAIT = (
    'import ctypes, os, sys\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n'  # not dumpable
    'guest, status = map(int, sys.argv[1:])\npid = code = 0\n'
    'while pid != guest: pid, code = os.waitpid(-1, 0)\n'
    'os.write(status, str(os.waitstatus_to_exitcode(code)).encode())'
)
"""What replaces the first process of a fork: it reaps the others, and ends with the guest."""

_SECONDS_BEFORE_REPLACEMENT = 0.3

_DESCRIPTORS = 1024
_CONTROL = 4  # index among the descriptors of a new guest
_fork, _exit = os.fork, os._exit


class Twins:
    """Makes forks of this guest. `control` is the descriptor of its control socket."""

    def __init__(self, control: int, channel: HostPipes) -> None:
        self._control = control
        self._channel = channel

    def fork(self) -> bool:
        """Fork. Returns in each guest that goes on: True in the new one, which has another channel."""
        data, passed = receive(self._control)
        if data == b'stay':  # the broker has refused the fork
            return False
        settings: dict[str, Any] = json.loads(data)
        _add_entropy()  # slow the first time
        gc.freeze()  # so that no collection touches, and copies, what is shared
        handler = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for forks that end
        children.is_twin = True
        try:
            if self._clone(passed[_CONTROL]):
                os.close(passed[-1])
                self._become(settings, passed[-2], handler, passed[:-2])
                self._channel.write_line(b'ready')
                return True
            for descriptor in passed[:-1]:
                os.close(descriptor)
            if settings['live'] and receive(self._control)[0] == b'move':
                self._move(settings, passed[-1], handler)
            else:
                os.close(passed[-1])
            return False
        finally:
            children.is_twin = False
            signal.signal(signal.SIGCHLD, handler)

    def _clone(self, control: int) -> bool:
        """Fork into new namespaces. True in the new process."""
        libc.prctl(_DUMPABLE, 1, 0, 0, 0)  # so that the broker may map its user
        try:
            if fork_into_namespaces() == 0:
                return True
        except OSError:  # such as too many levels
            send(control, b'refused')
        libc.prctl(_DUMPABLE, 0, 0, 0, 0)
        return False

    def _move(self, settings: dict[str, Any], status: int, handler: Any) -> None:
        """Continue in new namespaces, in another process. This one stays behind."""
        if self._clone(self._control):
            self._become(settings, status, handler)
            return
        os.closerange(0, _DESCRIPTORS)
        os.execv(_LEFT_BEHIND[0], _LEFT_BEHIND)

    def _become(self, settings: dict[str, Any], status: int, handler: Any, passed: Sequence[int] = ()) -> None:
        """Become the first process of the new namespaces, and start the guest there, which returns."""
        try:
            drop_capabilities()
            if passed:
                self._use(passed)
            send(self._control, b'forked')
            if receive(self._control)[0] != b'mounted':
                _exit(1)
            os.setsid()
            signal.signal(signal.SIGCHLD, handler)
            confine_fork(Confinement(**settings['confinement']), is_live=settings['live'])
            if (guest := _fork()) != 0:
                _wait_for(guest, status, replace=settings['live'])
            os.close(status)
            _reseed()
        except BaseException:
            _exit(1)

    def _use(self, passed: Sequence[int]) -> None:
        """Take the descriptors of the new guest instead of those of its origin."""
        own = (*self._channel.descriptors, 1, 2, self._control)
        for descriptor, number in zip(passed, own, strict=True):
            os.dup2(descriptor, number, inheritable=number < 3)
            os.close(descriptor)


def _wait_for(guest: int, status: int, *, replace: bool) -> None:
    """Reap all processes until the guest has ended, tell its exit code, and end. `replace`: let another program do it,
    as soon as the guest is likely to be at work. What the guest changes in its memory would be kept here, too."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.closerange(0, status)
    os.closerange(status + 1, _DESCRIPTORS)
    pid, code, end = 0, 0, time.monotonic() + _SECONDS_BEFORE_REPLACEMENT
    while pid != guest:
        pid, code = os.waitpid(-1, os.WNOHANG if replace else 0)
        if pid == 0 and time.monotonic() > end:
            os.set_inheritable(status, True)
            os.execve(sys.executable, [sys.executable, '-I', '-S', '-c', _WAIT, str(guest), str(status)], {})
        if pid == 0:
            time.sleep(0.01)
    os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
    _exit(0)


def _reseed() -> None:
    """Give a fork random numbers of its own, as `random` does itself. OpenSSL tells processes by their ids, which are
    the same in all forks."""
    with contextlib.suppress(Exception):
        if numpy := sys.modules.get('numpy.random'):
            numpy.seed()
    _add_entropy()


def _add_entropy() -> None:
    if ssl := sys.modules.get('_ssl'):
        ssl.RAND_add(os.urandom(32), 32.0)
