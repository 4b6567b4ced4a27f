"""What the broker makes sure of, from outside, when a guest is forked.

All code of a guest may be an attacker's, and it holds capabilities in the new namespaces for a moment. So the broker
does not rely on what the guest says: it holds the processes (`ptrace`; no other process can make them run), looks at
them, and kills those that are not as agreed. A fork inherits what its origin had open. So that the two are separate
from then on, there must be nothing through which they could reach each other: no pipe, no socket, no file, no shared
memory, and no process that sees both.
"""

import itertools
import os
import signal
import stat
import time
from collections.abc import Collection

from habilis.sandbox.process import kernel_calls as calls

SECONDS = 10.0
ENDING_TRIES = 100
"""How often a process that is just ending is looked at, every 10 ms."""
_MEMORY_DEVICES = 1
"""Major number of `/dev/null`, `/dev/urandom` and their like, which connect nobody."""

_LEFT_BEHIND_PAGES = 2000
_ALL_KINDS = 0x4000_0000
Inode = tuple[int, int]


class ForkRefused(Exception):
    """A fork that is not possible, or not safe. The host makes a snapshot instead."""


class ForkTarget:
    """A process of a guest. The descriptors never refer to another one that gets its id later."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle = os.pidfd_open(pid)
        self._folder = os.open(f'/proc/{pid}', os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Free the descriptors, in a process that goes on."""
        os.close(self.handle)
        os.close(self._folder)

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open a file of its folder in /proc."""
        return os.open(name, flags | os.O_CLOEXEC, dir_fd=self._folder)

    def read(self, name: str) -> str:
        """Read such a file."""
        with open(self.open(name)) as file:
            return file.read()

    def names(self, name: str) -> list[str]:
        """The names in such a folder."""
        folder = self.open(name, os.O_DIRECTORY)
        try:
            return os.listdir(folder)
        finally:
            os.close(folder)

    def stat(self, name: str) -> os.stat_result:
        """What such a file or link leads to."""
        return os.stat(name, dir_fd=self._folder)

    def children(self) -> list[int]:
        """The processes that it has started."""
        return [int(pid) for thread in self.names('task') for pid in self.read(f'task/{thread}/children').split()]

    def only_child(self) -> 'ForkTarget':
        """Its one child. Raises `ForkRefused` if there is none, or another one."""
        found = self.children()
        if len(found) != 1:
            raise ForkRefused('it has other processes')
        child = ForkTarget(found[0])
        if self.children() != found:
            raise ForkRefused('it has other processes')
        return child

    def signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        try:
            signal.pidfd_send_signal(self.handle, number)
        except ProcessLookupError:
            return

    def hold(self) -> None:
        """Stop it until `let_go`. Raises `ForkRefused` if it does not stop."""
        calls.seize(self.pid)
        end = time.monotonic() + SECONDS
        while os.waitpid(self.pid, _ALL_KINDS | os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                raise ForkRefused('it does not stop')
            time.sleep(0.0001)
        signal.pidfd_send_signal(self.handle, 0)  # not another one with this id

    def let_go(self) -> None:
        """Let it run again."""
        calls.release(self.pid)


def only_process(first: int, depth: int) -> list[ForkTarget]:
    """The processes of a guest, from its first one to the interpreter, `depth` levels below. Raises `ForkRefused` if
    there are others."""
    line = [ForkTarget(first)]
    for _ in range(depth):
        line.append(line[-1].only_child())
    if line[-1].children() or len(line[-1].names('task')) > 1:
        raise ForkRefused('it has other processes or threads')
    return line


def check_zygote(zygote: ForkTarget) -> None:
    """Make sure that a zygote has no threads, which a fork would lack, and no process beside its forks, which have
    process ids of their own."""
    own = zygote.stat('ns/pid').st_ino
    for pid in zygote.children():
        if _is_inside(pid, own):
            raise ForkRefused('a package has started a process')
    if len(zygote.names('task')) > 1:
        raise ForkRefused('a package has started a thread')


def _is_inside(pid: int, namespace: int) -> bool:
    """Whether a process lives in this namespace of processes. One that is just ending is in none, and ends soon."""
    for _ in range(ENDING_TRIES):
        try:
            return os.stat(f'/proc/{pid}/ns/pid').st_ino == namespace
        except OSError:
            if _has_ended(pid):
                return False
        time.sleep(0.01)
    return True


def _has_ended(pid: int) -> bool:
    try:
        with open(f'/proc/{pid}/stat') as file:
            return file.read().rpartition(')')[2].split()[0] in 'ZX'
    except OSError:
        return True


def check_alone(target: ForkTarget) -> None:
    """Make sure that the first process of new namespaces is the only one there, and has no capability left."""
    if [name for name in target.names('root/proc') if name.isdigit()] != ['1'] or len(target.names('task')) > 1:
        raise ForkRefused('it has started other processes')
    fields = dict(line.split(':\t') for line in target.read('status').splitlines() if ':\t' in line)
    if any(int(fields[name], 16) for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')) or fields['NoNewPrivs'] != '1':
        raise ForkRefused('it has kept capabilities')


def check_descriptors(target: ForkTarget, known: Collection[Inode]) -> None:
    """Make sure that a process has no descriptor but those that were passed to it, and its folder."""
    for name in target.names('fd'):
        info = target.stat(f'fd/{name}')
        is_harmless = stat.S_ISCHR(info.st_mode) and os.major(info.st_rdev) == _MEMORY_DEVICES
        if not is_harmless and (info.st_dev, info.st_ino) not in known:
            raise ForkRefused(f'it has {os.readlink(f"/proc/{target.pid}/fd/{name}")} open')


def check_memory(target: ForkTarget, private: Collection[int]) -> None:
    """Make sure that a process has no shared memory, and nothing of the devices of private folders."""
    if target.stat('cwd').st_dev in private:
        raise ForkRefused('its current folder is private')
    system = target.stat('root/usr').st_dev
    for line in target.read('maps').splitlines():
        _, rights, _, device, *_ = line.split()
        major, minor = (int(number, 16) for number in device.split(':'))
        number = os.makedev(major, minor)
        # One that can only be read may get more rights later, unless it is a file that nobody may write. On the device
        # of the system, all others are in folders that both may write anyway.
        if number in private or (rights[3] == 's' and (rights[1] == 'w' or number != system)):
            raise ForkRefused('it has shared memory')


def check_left_behind(line: list[ForkTarget], made: Collection[int]) -> None:
    """Make sure that of the former processes of a guest none is left but those of the line, of which the last has no
    pipes, no sockets and almost no memory, and has only made these."""
    for above, below in itertools.pairwise(line):
        if above.children() != [below.pid]:
            raise ForkRefused('it has started other processes')
    *_, last = line
    if set(last.children()) != set(made) or len(last.names('task')) > 1:
        raise ForkRefused('it has started other processes')
    if not all(stat.S_ISREG(last.stat(f'fd/{name}').st_mode) for name in last.names('fd')):  # its libraries may be open
        raise ForkRefused('it keeps its descriptors')
    if int(last.read('statm').split()[1]) > _LEFT_BEHIND_PAGES:
        raise ForkRefused('it keeps its memory')
