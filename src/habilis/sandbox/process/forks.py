"""One fork of a guest, as the broker carries it out: in a process of its own, outside of the isolation."""

import json
import os
import select
import signal
import time
from collections.abc import Collection, Sequence
from typing import Any, TypedDict

from habilis.sandbox.process import fork_checks as checks
from habilis.sandbox.process import kernel_calls as calls
from habilis.sandbox.process.fork_checks import SECONDS, ForkRefused, ForkTarget, Inode

Mounted = list[tuple[int, str]]
"""Detached mounts, and where they belong."""

PRIVATE = calls.NO_SETUID | calls.NO_DEVICES
_HARDENED = calls.READ_ONLY | PRIVATE | calls.NO_EXECUTION
_TERMINALS = '/dev/pts'
_BUBBLEWRAP = 2
"""Depth of an interpreter that bubblewrap has started: the processes above it are not the guest's."""

_JOINED = {'user': calls.NEW_USERS, 'net': calls.NEW_NETWORK, 'mnt': calls.NEW_MOUNTS}


class MountRequest(TypedDict):
    """A folder of the host in a guest."""

    source: str
    target: str
    writable: bool


class BrokerRequest(TypedDict):
    """A request of the host. It has the fields of its operation."""

    op: str
    command: list[str]
    settings: dict[str, Any]
    mounts: list[MountRequest]
    user: int
    group: str | None
    main: int
    first: int
    depth: int
    tmpfs: dict[str, str]
    inodes: list[Inode]


class Fork:
    """One fork. The descriptors: for the answer, the listener of the guest, its control socket, the other end of that
    of the new guest, and those for the guest. `mounts` are the folders of the new guest."""

    def __init__(self, request: BrokerRequest, descriptors: Sequence[int], mounts: Mounted) -> None:
        self._request = request
        self._mounts = mounts
        self._reply, self._listener, self._control, self._new_control, *self._passed = descriptors
        *inodes, self._new_inode_of_origin = [(info.st_dev, info.st_ino) for info in map(os.fstat, self._passed)]
        self._inodes = set(inodes)
        self._made: list[ForkTarget] = []
        self._awaited = True
        """Whether the guest waits for a decision."""

    def run(self) -> None:
        """Fork the guest into namespaces of its own. One that has run code moves to such namespaces as well."""
        try:
            if self._request['settings']['live']:
                self._fork_live()
            else:
                self._fork_zygote()
            pids = [target.pid for target in self._made]
            answer = json.dumps({'pids': pids}).encode()
            calls.send(self._reply, answer, [target.handle for target in self._made])
        except BaseException:
            for target in self._made:
                target.signal(signal.SIGKILL)
            if self._awaited:
                calls.send(self._control, b'stay')
            raise

    def _fork_zygote(self) -> None:
        zygote = ForkTarget(self._request['main'])
        checks.check_zygote(zygote)
        self._pass_descriptors()
        self._awaited = False
        made = self._isolate(zygote, self._new_control, self._mounts, self._request['tmpfs'])
        made.hold()
        checks.check_alone(made)
        checks.check_descriptors(made, self._inodes)
        self._start(made, self._new_control)

    def _fork_live(self) -> None:
        line = checks.only_process(self._request['first'], self._request['depth'])
        *_, guest = line
        folders = [*self._request['tmpfs'], '/proc', _TERMINALS]
        private = {guest.stat(f'root{folder}').st_dev for folder in folders}
        self._pass_descriptors()
        made = self._isolate(guest, self._new_control, [], self._request['tmpfs'])
        checks.check_descriptors(made, self._inodes)  # while the guest can still stay as it is
        checks.check_memory(made, private)
        calls.send(self._control, b'move')
        self._awaited = False
        try:
            moved = self._isolate(guest, self._control, [], {})
            _wait_for_exec(guest, moved.stat('exe').st_ino)
            former = line if self._request['depth'] < _BUBBLEWRAP else [guest]
            for target in (*former, made, moved):
                target.hold()
            checks.check_left_behind(line, [made.pid, moved.pid])
            for target, inodes in ((made, self._inodes), (moved, self._inodes_of_origin())):
                checks.check_alone(target)
                checks.check_descriptors(target, inodes)
            checks.check_memory(made, private)
        except BaseException:
            line[0].signal(signal.SIGKILL)
            raise
        for target in former:
            target.signal(signal.SIGSTOP)  # nothing that sees both guests may run
            target.let_go()
        self._start(made, self._new_control)
        self._start(moved, self._control)

    def _pass_descriptors(self) -> None:
        calls.send(self._control, json.dumps(self._request['settings']).encode(), self._passed)

    def _inodes_of_origin(self) -> Collection[Inode]:
        return {self._new_inode_of_origin, *((device, number) for device, number in self._request['inodes'])}

    def _start(self, target: ForkTarget, control: int) -> None:
        if target is self._made[0]:
            join_group(self._request['group'], target.pid)
        target.let_go()
        calls.send(control, b'mounted')

    def _isolate(self, guest: ForkTarget, control: int, mounts: Mounted, private: dict[str, str]) -> ForkTarget:
        """Allow the guest to fork into new namespaces, and set them up. Returns the first process inside."""
        before = self._allow(guest, control)
        mounts = [*mounts, *_make_private(private)]
        self._wait(guest, control)
        if calls.receive(control)[0] != b'forked':
            raise ForkRefused('the guest did not fork')
        [pid] = set(guest.children()) - before
        made = ForkTarget(pid)
        self._made.append(made)
        if pid not in guest.children():
            raise ForkRefused('the guest did not fork')
        self._set_up(guest, made, mounts)
        return made

    def _allow(self, guest: ForkTarget, control: int) -> set[int]:
        """Wait for the call of the guest and allow it. Others are refused. Returns the children that it had before."""
        while True:
            if self._listener not in self._wait(guest, self._listener, control):
                raise ForkRefused('the guest did not fork')
            before = set(guest.children())
            try:
                number, pid, call, flags = calls.receive_notice(self._listener)
                expected = (guest.pid, calls.CLONE[os.uname().machine], calls.FORK_FLAGS)
                allowed = (pid, call, flags) == expected and calls.is_waiting(self._listener, number)
                calls.decide(self._listener, number, allowed=allowed)
            except FileNotFoundError:  # its process has ended
                continue
            if allowed:
                return before

    # Namespaces -------------------------------------------------------------------------------------------------------

    def _set_up(self, guest: ForkTarget, made: ForkTarget, mounts: Mounted) -> None:
        """Set up the new namespaces, by a process inside of them."""
        namespace = made.open('ns/pid')
        calls.join(namespace, calls.NEW_PIDS)  # only for processes that are forked from now on
        os.close(namespace)
        result, told = os.pipe()
        if (inside := os.fork()) == 0:
            try:
                self._set_up_inside(guest, made, mounts)
                os.write(told, b'.')
            except BaseException as error:
                os.write(told, repr(error).encode())
            os._exit(0)
        os.close(told)
        error = os.read(result, 1000)
        os.close(result)
        os.waitpid(inside, 0)
        if error != b'.':
            raise ForkRefused(error.decode())

    def _set_up_inside(self, guest: ForkTarget, made: ForkTarget, mounts: Mounted) -> None:
        parent, user = guest.open('ns/user'), self._request['user']
        opened = {name: made.open(f'ns/{name}') for name in _JOINED}
        mounts = [(calls.new_mount(b'proc', _HARDENED), '/proc'), *mounts]
        if not os.path.sameopenfile(parent, os.open('/proc/self/ns/user', os.O_RDONLY)):
            calls.join(parent, calls.NEW_USERS)
        for kind in ('uid', 'gid'):
            with open(made.open(f'{kind}_map', os.O_WRONLY), 'w') as file:
                file.write(f'{user} {user} 1\n')
        for name, kind in _JOINED.items():
            calls.join(opened[name], kind)
        calls.enable_loopback()
        for mount, path in mounts:
            calls.attach_mount(mount, path)

    def _wait(self, guest: ForkTarget, *descriptors: int) -> list[int]:
        """Wait for one of these descriptors, until the guest ends or the host gives up."""
        ends = [guest.handle, self._reply]
        ready, _, _ = select.select([*ends, *descriptors], [], [], SECONDS)
        if not ready or any(end in ready for end in ends):
            raise ForkRefused('the guest did not answer')
        return ready


def _make_private(sizes: dict[str, str]) -> Mounted:
    """The folders that are new and empty in a fork, with their sizes, and its terminals."""
    made = [(calls.new_mount(b'tmpfs', PRIVATE, size=size, mode='1777'), path) for path, size in sizes.items()]
    if sizes:
        rights = calls.NO_SETUID | calls.NO_EXECUTION
        made.append((calls.new_mount(b'devpts', rights, ptmxmode='0666', mode='620'), _TERMINALS))
    return made


def join_group(group: str | None, pid: int) -> None:
    """Put a process into the control group of its guest, before it starts others."""
    if group is not None:
        with open(f'{group}/cgroup.procs', 'w') as file:
            file.write(str(pid))


def _wait_for_exec(guest: ForkTarget, program: int) -> None:
    """Wait until a guest that has moved has replaced its program, after it has closed everything."""
    end = time.monotonic() + SECONDS
    while guest.stat('exe').st_ino == program and time.monotonic() < end:
        time.sleep(0.0002)
