"""The broker: a small process outside of the isolation that starts guests, and gives forked ones their isolation.

    python -I -S -c '…' DESCRIPTOR

It exists because a mount or process namespace can only be prepared by a process with rights over it, quickly only by
one that runs already, and because no code of a guest or of a package may be in its memory. Each request is a packet of
JSON with descriptors, handled by a fork of the broker; the answer goes to the first of the descriptors.
"""

import json
import os
import select
import signal
import sys
import time
from typing import Any

from habilis.sandbox.process import kernel_calls as calls
from habilis.sandbox.process.fork_checks import Refused, check_private, children, only_process, threads
from habilis.sandbox.process.mapped_mounts import mapped_mount, new_user, owner_of

SECONDS = 10.0
"""Time limit for the answers of a guest that is forked."""

_PRIVATE = calls.NO_SETUID | calls.NO_DEVICES
_Trees = list[tuple[int, str]]
_UNSHARE = {'x86_64': 272, 'aarch64': 97}[os.uname().machine]


def main() -> None:
    """Handle requests until the host closes the socket."""
    calls.libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # end with the host
    can_fork = _own_mounts()
    socket = int(sys.argv[1])
    statuses: dict[int, int] = {}
    ended, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    calls.send(socket, json.dumps({'can_fork': can_fork}).encode())
    while True:
        ready, _, _ = select.select([socket, ended], [], [])
        if ended in ready:
            os.read(ended, 1000)
            _report_ended(statuses)
        if socket in ready:
            data, descriptors = calls.receive(socket)
            if not data:
                return
            request = json.loads(data)
            if request['op'] == 'spawn':
                _spawn(request, descriptors, statuses)
            else:
                _fork_worker(request, descriptors)


def _own_mounts() -> bool:
    """Get a copy of the mounts, with rights over it. False if that is refused; then no guest can be forked."""
    user, group = os.getuid(), os.getgid()
    try:
        if os.geteuid() == 0:
            calls.unshare(calls.NEW_MOUNTS)
        else:
            calls.unshare(calls.NEW_MOUNTS | calls.NEW_USERS)
            for name, text in (
                ('setgroups', 'deny'),
                ('uid_map', f'{user} {user} 1'),
                ('gid_map', f'{group} {group} 1'),
            ):
                with open(f'/proc/self/{name}', 'w') as file:
                    file.write(text)
        calls.make_mounts_private()
    except OSError:
        return False
    return True


def _report_ended(statuses: dict[int, int]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if (told := statuses.pop(pid, None)) is not None:
            os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(told)


def _answer(descriptor: int, answer: dict[str, Any], *descriptors: int) -> None:
    calls.send(descriptor, json.dumps(answer).encode(), descriptors)


# Guests that bubblewrap starts ----------------------------------------------------------------------------------------


def _spawn(request: dict[str, Any], descriptors: list[int], statuses: dict[int, int]) -> None:
    """Start bubblewrap. The descriptors: for the answer, for the exit code, stdin, stdout, stderr, and the others."""
    answer, status, *passed = descriptors
    trees: _Trees = []
    try:
        settings = request['settings']
        if os.geteuid() == 0:
            settings['confinement']['user'], trees = _map(request['mounts'])
        pid = os.fork()
        if pid == 0:
            _become_guest(request, passed, trees)
        statuses[pid] = status
        _answer(answer, {'pid': pid, 'user': settings['confinement']['user']}, os.pidfd_open(pid))
    except (OSError, Refused) as error:
        os.close(status)
        _answer(answer, {'error': str(error)})
    finally:
        for descriptor in (answer, *passed, *(tree for tree, _ in trees)):
            os.close(descriptor)


def _map(mounts: list[dict[str, Any]]) -> tuple[int | None, _Trees]:
    """The user of a guest, and its mounts mapped to that user. Without them where the file system cannot do it."""
    user = new_user()
    trees: _Trees = []
    try:
        for path in sorted({mount['source'] for mount in mounts}):  # outer folders before inner ones
            trees.append((mapped_mount(path, user), path))
    except OSError:
        for tree, _ in trees:
            os.close(tree)
        return owner_of([mount['source'] for mount in mounts if mount['writable']]), []
    return user, trees


def _become_guest(request: dict[str, Any], passed: list[int], trees: _Trees) -> None:
    """Become bubblewrap. The first three descriptors are its standard streams, the others get the numbers from 3 on."""
    try:
        calls.libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _join_group(request['group'], 0)
        if trees:
            calls.unshare(calls.NEW_MOUNTS)
            for tree, path in trees:
                calls.attach_mount(tree, path)
        high = [os.dup2(descriptor, 100 + index) for index, descriptor in enumerate(passed)]
        for index, descriptor in enumerate(high):
            os.dup2(descriptor, index)
        os.closerange(len(high), 400)
        command = [*request['command'], json.dumps(request['settings'])]
        os.execve(command[0], command, {})
    except BaseException as error:
        os.write(2, f'{error}\n'.encode())
    finally:
        os._exit(1)


def _join_group(group: str | None, pid: int) -> None:
    """Put a process into the control group of its guest, before it starts others."""
    if group is not None:
        with open(f'{group}/cgroup.procs', 'w') as file:
            file.write(str(pid))


# Guests that are forked -----------------------------------------------------------------------------------------------


def _fork_worker(request: dict[str, Any], descriptors: list[int]) -> None:
    if os.fork() == 0:
        try:
            _Fork(request, descriptors).run()
        except BaseException as error:
            _answer(descriptors[0], {'error': f'{type(error).__name__}: {error}'})
        finally:
            os._exit(0)
    for descriptor in descriptors:
        os.close(descriptor)


class _Fork:
    """One fork of a guest. The descriptors: for the answer, its listener, its control socket, the other end of that of
    the new guest, and those for the guest."""

    def __init__(self, request: dict[str, Any], descriptors: list[int]) -> None:
        self._request = request
        self._reply, self._listener, self._control, self._new_control, *self._passed = descriptors
        self._parent = -1
        self._begun: list[int] = []
        self._awaited = True  # whether the guest waits for a decision

    def run(self) -> None:
        """Fork the guest into namespaces of its own. One that has run code moves to such namespaces as well."""
        request = self._request
        try:
            live = request['settings']['live']
            guest = only_process(request['first'], request['depth']) if live else request['main']
            calls.send(self._control, json.dumps(request['settings']).encode(), self._passed)
            self._awaited = live
            middle, made = self._isolate(self._new_control, guest, is_origin=False)
            if live:
                check_private(made, self._passed, list(request['tmpfs']))
            self._mount(middle, request['mounts'], request['tmpfs'])
            _join_group(request['group'], made)
            calls.send(self._new_control, b'mounted')
            _kill(middle)
            pids = [made]
            if live:
                pids.append(self._move(guest))
            _answer(self._reply, {'pids': pids}, *map(os.pidfd_open, pids))
        except BaseException:
            for pid in self._begun:
                _kill(pid)
            if self._awaited:
                calls.send(self._control, b'stay')
            raise

    def _move(self, guest: int) -> int:
        """Move the origin to new namespaces. Returns its first process there."""
        calls.send(self._control, b'move')
        _, moved = self._isolate(self._control, guest, is_origin=True)
        self._mount(guest, [], {})
        calls.send(self._control, b'mounted')
        program, end = os.readlink(f'/proc/{moved}/exe'), time.monotonic() + SECONDS
        while os.readlink(f'/proc/{guest}/exe') == program and time.monotonic() < end:
            time.sleep(0.0005)
        os.kill(guest, signal.SIGSTOP)  # nothing that sees both guests may run
        if children(guest) != [moved] or threads(guest) != 1:
            raise Refused('it has started other processes')
        return moved

    def _isolate(self, control: int, guest: int, *, is_origin: bool) -> tuple[int, int]:
        """Allow new namespaces. Returns the process that made them, and the first one inside."""
        number, pid = self._next_notice(guest, is_origin=is_origin)
        self._parent = os.open(f'/proc/{pid}/ns/user', os.O_RDONLY | os.O_CLOEXEC)
        if not is_origin:
            self._begun.append(pid)
        calls.decide(self._listener, number, allowed=True)
        self._wait(control)
        if calls.receive(control)[0] != b'forked':
            raise Refused('the guest did not fork')
        [first] = children(pid)
        self._begun.append(first)
        return pid, first

    def _next_notice(self, guest: int, *, is_origin: bool) -> tuple[int, int]:
        """Wait for the call of the guest, or of the process that it forked. Others are refused."""
        while True:
            self._wait(self._listener)
            number, pid, call, flags = calls.receive_notice(self._listener)
            is_expected = pid == guest if is_origin else pid in children(guest)
            if is_expected and call == _UNSHARE and flags == calls.FORK_NAMESPACES:
                return number, pid
            calls.decide(self._listener, number, allowed=False)

    def _mount(self, process: int, mounts: list[dict[str, Any]], tmpfs: dict[str, str]) -> None:
        """Set up the namespaces of the process, as a process inside of them."""
        result, told = os.pipe()
        if os.fork() == 0:
            try:
                self._mount_inside(process, mounts, tmpfs, told)
            except BaseException as error:
                os.write(told, repr(error).encode())
            os._exit(0)
        os.close(told)
        error = os.read(result, 1000)
        os.close(result)
        os.wait()
        if error != b'.':
            raise Refused(error.decode())

    def _mount_inside(self, process: int, mounts: list[dict[str, Any]], tmpfs: dict[str, str], told: int) -> None:
        names = {'pid_for_children': calls.NEW_PIDS, 'user': calls.NEW_USERS, 'mnt': calls.NEW_MOUNTS}
        opened = {name: os.open(f'/proc/{process}/ns/{name}', os.O_RDONLY | os.O_CLOEXEC) for name in names}
        made = [(self._copy(mount), mount['target']) for mount in mounts]
        calls.join(opened['pid_for_children'], calls.NEW_PIDS)
        if (inside := os.fork()) != 0:
            os.waitpid(inside, 0)
            os._exit(0)
        hardened = calls.READ_ONLY | _PRIVATE | calls.NO_EXECUTION
        made.append((calls.new_mount(b'proc', hardened), '/proc'))
        made += [(calls.new_mount(b'tmpfs', _PRIVATE, size=size, mode='1777'), path) for path, size in tmpfs.items()]
        user = self._request['user']
        if not os.path.sameopenfile(self._parent, os.open('/proc/self/ns/user', os.O_RDONLY)):
            calls.join(self._parent, calls.NEW_USERS)
        for kind in ('uid', 'gid'):
            with open(f'/proc/{process}/{kind}_map', 'w') as file:
                file.write(f'{user} {user} 1\n')
        calls.join(opened['user'], calls.NEW_USERS)
        calls.join(opened['mnt'], calls.NEW_MOUNTS)
        for mount, path in made:
            calls.attach_mount(mount, path)
        os.write(told, b'.')

    def _copy(self, mount: dict[str, Any]) -> int:
        source = mount['source']
        made = mapped_mount(source, self._request['user']) if os.geteuid() == 0 else calls.copy_mount(source)
        calls.set_mount_attributes(made, _PRIVATE | (0 if mount['writable'] else calls.READ_ONLY))
        return made

    def _wait(self, descriptor: int) -> None:
        if not select.select([descriptor], [], [], SECONDS)[0]:
            raise Refused('the guest did not answer')


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
