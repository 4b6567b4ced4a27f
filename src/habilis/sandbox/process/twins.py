"""A guest forks itself into namespaces of its own. Runs inside; the broker outside allows it and sets them up.

The request to fork comes through the channel of the guest, and what belongs to it through the control socket: settings,
and the descriptors of the new guest. A guest that has run no code yet (a zygote) stays where it is. One that has would
see the processes of the new guest, so it moves to new namespaces itself; what is left behind is a stopped process.
"""

import json
import os
import signal
from collections.abc import Sequence
from typing import Any

from habilis.sandbox.guest import children
from habilis.sandbox.guest.__main__ import Channel
from habilis.sandbox.process.confinement import Confinement, confine_fork
from habilis.sandbox.process.kernel_calls import FORK_NAMESPACES, libc, receive, send, unshare

_DUMPABLE = 4
_LEFT_BEHIND = ['/bin/sleep', 'infinity']
_DESCRIPTORS = 1024
_CONTROL = 4  # index among the descriptors of a new guest
_fork, _exit = os.fork, os._exit


class Twins:
    """Makes forks of this guest. `control` is the descriptor of its control socket."""

    def __init__(self, control: int, channel: Channel) -> None:
        self._control = control
        self._channel = channel

    def fork(self) -> bool:
        """Fork. Returns in each guest that goes on: True in the new one, which has another channel."""
        data, passed = receive(self._control)
        if data == b'stay':  # the broker has refused the fork
            return False
        settings: dict[str, Any] = json.loads(data)
        children.is_twin = True
        try:
            if (pid := _fork()) == 0:
                self._continue(settings, passed)
                return True
            os.waitpid(pid, 0)
            for descriptor in passed[:-1]:
                os.close(descriptor)
            if settings['live'] and receive(self._control)[0] == b'move':
                self._enter(settings, passed[-1])
            else:
                os.close(passed[-1])
            return False
        finally:
            children.is_twin = False

    def _continue(self, settings: dict[str, Any], passed: list[int]) -> None:
        """Become the new guest, or end."""
        try:
            self._enter(settings, passed[-2], passed[:-2])
            os.close(passed[-1])
            self._channel.write_line(b'ready')
        except BaseException:
            _exit(1)

    def _enter(self, settings: dict[str, Any], status: int, passed: Sequence[int] = ()) -> None:
        """Continue in new namespaces, in another process. This one stays behind."""
        libc.prctl(_DUMPABLE, 1, 0, 0, 0)  # so that the broker may map its user
        try:
            unshare(FORK_NAMESPACES)
        except OSError:  # such as too many levels
            send(passed[_CONTROL] if passed else self._control, b'refused')
            raise
        if _fork() != 0:
            os.closerange(0, _DESCRIPTORS)
            if not passed:
                os.execv(_LEFT_BEHIND[0], _LEFT_BEHIND)
            while True:
                signal.pause()
        if passed:
            self._use(passed)
        send(self._control, b'forked')
        if receive(self._control)[0] != b'mounted':
            _exit(1)
        self._become_first_process(settings, status)

    def _use(self, passed: Sequence[int]) -> None:
        """Take the descriptors of the new guest instead of those of its origin."""
        own = (*self._channel.descriptors, 1, 2, self._control)
        for descriptor, number in zip(passed, own, strict=True):
            os.dup2(descriptor, number, inheritable=number < 3)
            os.close(descriptor)

    def _become_first_process(self, settings: dict[str, Any], status: int) -> None:
        """Confine this process, the first of its namespace, and start the guest, which returns."""
        os.setsid()
        confine_fork(Confinement(**settings['confinement']), is_live=settings['live'])
        if (guest := _fork()) == 0:
            os.close(status)
            return
        os.closerange(0, status)
        os.closerange(status + 1, _DESCRIPTORS)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        while True:
            pid, code = os.waitpid(-1, 0)
            if pid == guest:
                os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
                _exit(0)
