"""What the broker checks, from outside, when a guest that has run code is forked.

A fork inherits what its origin had open. So that the two are separate from then on, there must be nothing through which
they could reach each other: no pipe, no socket, no shared memory, no file of the private folders, and no process that
sees both.
"""

import os
import stat
from collections.abc import Sequence


class Refused(Exception):
    """A fork that is not possible, or not safe. The host makes a snapshot instead."""


def only_process(first: int, depth: int) -> int:
    """The one process of a guest, `depth` levels below the first one. Raises `Refused` if there are others."""
    for _ in range(depth):
        below = children(first)
        if len(below) != 1:
            raise Refused('it has other processes')
        [first] = below
    if children(first) or threads(first) > 1:
        raise Refused('it has other processes or threads')
    return first


def check_private(pid: int, passed: Sequence[int], private_folders: Sequence[str]) -> None:
    """Raise `Refused` if this process could reach its origin through something else than what was passed to it."""
    known = {(info.st_dev, info.st_ino) for info in map(os.fstat, passed)}
    private = {os.stat(f'/proc/{pid}/root{folder}').st_dev for folder in private_folders}
    if os.stat(f'/proc/{pid}/cwd').st_dev in private:
        raise Refused('its current folder is private')
    for name in os.listdir(f'/proc/{pid}/fd'):
        info = os.stat(f'/proc/{pid}/fd/{name}')
        if (info.st_dev, info.st_ino) in known or stat.S_ISCHR(info.st_mode):
            continue
        if not stat.S_ISREG(info.st_mode) or info.st_dev in private:
            raise Refused(f'it has {os.readlink(f"/proc/{pid}/fd/{name}")} open')
    with open(f'/proc/{pid}/maps') as file:
        for line in file:
            _, rights, _, device, *_ = line.split()
            major, minor = (int(number, 16) for number in device.split(':'))
            if 'ws' in rights.replace('x', '').replace('-', '') or os.makedev(major, minor) in private:
                raise Refused('it has shared memory')


def children(pid: int) -> list[int]:
    """The processes that this one has started."""
    found: list[int] = []
    for thread in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{thread}/children') as file:
            found += [int(child) for child in file.read().split()]
    return found


def threads(pid: int) -> int:
    """The number of threads of a process."""
    return len(os.listdir(f'/proc/{pid}/task'))
