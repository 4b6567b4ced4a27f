"""The broker: a small process outside of the isolation that starts guests, and gives forked ones their isolation.

    python -I -S -c '…' DESCRIPTOR PARENT

It exists because a mount or process namespace can only be prepared by a process with rights over it, quickly only by
one that runs already, and because no code of a guest or of a package may be in its memory. Each request is a packet of
JSON with descriptors, handled by a fork of the broker; the answer goes to the first of the descriptors. It was started
without a garbage collection, which would touch, and copy, the memory that forks share.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
from collections.abc import Sequence

from habilis.sandbox.process import kernel_calls as calls
from habilis.sandbox.process.fork_checks import ForkRefused
from habilis.sandbox.process.forks import PRIVATE, BrokerRequest, Fork, Mounted, MountRequest, join_group
from habilis.sandbox.process.mapped_mounts import exists, mapped_mount, new_user, owner_of


def main() -> None:
    """Handle requests until the host closes the socket."""
    calls.libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # end with the host
    socket = int(sys.argv[1])
    os.set_inheritable(socket, False)
    if os.getppid() != int(sys.argv[2]):  # it has ended already
        return
    can_fork = _own_mounts()
    calls.libc.prctl(4, 0, 0, 0, 0)  # its workers enter the namespaces of guests, who may not trace them
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
            request: BrokerRequest = json.loads(data)
            if request['op'] == 'spawn':
                _spawn(request, descriptors, statuses)
            else:
                _fork_worker(request, descriptors, (socket, ended, wakeup, *statuses.values()))


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
            with contextlib.suppress(BrokenPipeError):  # nobody wants to know
                os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(told)


def _answer(descriptor: int, answer: dict[str, object], *descriptors: int) -> bool:
    """Answer a request. False if the host has given it up."""
    try:
        calls.send(descriptor, json.dumps(answer).encode(), descriptors)
    except OSError:
        return False
    return True


# Guests that bubblewrap starts ----------------------------------------------------------------------------------------


def _spawn(request: BrokerRequest, descriptors: list[int], statuses: dict[int, int]) -> None:
    """Start bubblewrap. The descriptors: for the answer, for the exit code, stdin, stdout, stderr, and the others."""
    answer, status, *passed = descriptors
    trees: Mounted = []
    try:
        settings = request['settings']
        if os.geteuid() == 0:
            user, trees = _map(request['mounts'])
            settings['confinement'] |= {'user': user, 'listen': settings['confinement']['listen'] and user is not None}
        pid = os.fork()
        if pid == 0:
            _become_guest(request, passed, trees)
        statuses[pid] = status
        handle = os.pidfd_open(pid)
        if not _answer(answer, {'pid': pid, 'user': settings['confinement']['user']}, handle):
            os.kill(pid, signal.SIGKILL)
        os.close(handle)
    except (OSError, ForkRefused) as error:
        os.close(status)
        _answer(answer, {'error': str(error)})
    finally:
        for descriptor in (answer, *passed, *(tree for tree, _ in trees)):
            os.close(descriptor)


def _map(mounts: list[MountRequest]) -> tuple[int | None, Mounted]:
    """The user of a guest, and its mounts mapped to that user. Without them where the file system cannot do it."""
    user = new_user()
    trees: Mounted = []
    try:
        if not exists(user):
            raise OSError('this container has no such user')
        for path in sorted({mount['source'] for mount in mounts}):  # outer folders before inner ones
            trees.append((mapped_mount(path, user), path))
    except OSError:
        for tree, _ in trees:
            os.close(tree)
        return owner_of([mount['source'] for mount in mounts if mount['writable']]), []
    return user, trees


def _become_guest(request: BrokerRequest, passed: list[int], trees: Mounted) -> None:
    """Become bubblewrap. The first three descriptors are its standard streams, the others get the numbers from 3 on."""
    try:
        calls.libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        join_group(request['group'], 0)
        if trees:
            calls.unshare(calls.NEW_MOUNTS)
            for tree, path in trees:
                calls.attach_mount(tree, path)
        high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(passed) + 1) for descriptor in passed]
        for index, descriptor in enumerate(high):
            os.dup2(descriptor, index)
        os.closerange(len(high), 1 << 20)
        command = [*request['command'], json.dumps(request['settings'])]
        os.execve(command[0], command, {})
    except BaseException as error:
        os.write(2, f'{error}\n'.encode())
    finally:
        os._exit(1)


# Guests that are forked -----------------------------------------------------------------------------------------------


def _fork_worker(request: BrokerRequest, descriptors: list[int], own: Sequence[int]) -> None:
    """Handle a request in a process of its own, which has none of the descriptors of other guests."""
    mounts: Mounted = []
    try:
        mounts += [(_copy(mount, request['user']), mount['target']) for mount in request['mounts']]
        if os.fork() == 0:
            for descriptor in own:
                os.close(descriptor)
            _run_worker(request, descriptors, mounts)
    except OSError as error:
        _answer(descriptors[0], {'error': str(error)})
        with contextlib.suppress(OSError):
            calls.send(descriptors[2], b'stay')
    finally:
        for descriptor in (*descriptors, *(mount for mount, _ in mounts)):
            os.close(descriptor)


def _run_worker(request: BrokerRequest, descriptors: list[int], mounts: Mounted) -> None:
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        calls.libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        Fork(request, descriptors, mounts).run()
    except BaseException as error:
        reason = str(error) if isinstance(error, ForkRefused) else repr(error)
        _answer(descriptors[0], {'error': reason})
    finally:
        os._exit(0)


def _copy(mount: MountRequest, user: int) -> int:
    source = mount['source']
    made = mapped_mount(source, user) if os.geteuid() == 0 else calls.copy_mount(source)
    calls.set_mount_attributes(made, PRIVATE | (0 if mount['writable'] else calls.READ_ONLY))
    return made
