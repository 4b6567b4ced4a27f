"""Mounts for a guest of root, which runs as a user of its own.

The mounts are mapped: their owner is that user inside, and stays the same on disk. They exist only in the mount
namespaces of the guest, so nothing of them is left behind. Runs in the broker.
"""

import os
import signal
from collections.abc import Sequence

from habilis.sandbox.process.kernel_calls import MAPPED, NEW_USERS, copy_mount, set_mount_attributes, unshare

FIRST_USER, USERS = 0x6000_0000, 0x0FFF_FFFF
"""Where the user of a guest is chosen from, at random: nobody else has these."""

NOBODY = 65534
KEPT = 16
_namespaces: dict[tuple[int, int, int], int] = {}


def new_user() -> int:
    """A user that nobody else has."""
    return FIRST_USER + int.from_bytes(os.urandom(8), 'little') % USERS


def exists(user: int) -> bool:
    """Whether this process may become that user: in a container, only some exist."""
    with open('/proc/self/uid_map') as file:
        ranges = [tuple(map(int, line.split())) for line in file]
    return any(first <= user < first + count for first, _, count in ranges)


def owner_of(writable: Sequence[str]) -> int | None:
    """The user for folders that cannot be mapped: their owner; None to stay root, without capabilities."""
    owners = {os.stat(path).st_uid for path in writable} or {NOBODY}
    owner = owners.pop()
    return owner if not owners and owner != 0 and exists(owner) else None


def mapped_mount(path: str, user: int) -> int:
    """A detached copy of a mount, whose owner is the user. Raises `OSError` where the file system cannot map users."""
    tree = copy_mount(path)
    info = os.fstat(tree)
    try:
        set_mount_attributes(tree, MAPPED, _user_namespace(info.st_uid, info.st_gid, user))
    except OSError:
        os.close(tree)
        raise
    return tree


def _user_namespace(owner: int, group: int, user: int) -> int:
    """A user namespace that maps the ids on disk to those of the guest, and nothing else. The last ones are kept: the
    forks of a zygote have the same user."""
    key = owner, group, user
    if key not in _namespaces:
        if len(_namespaces) == KEPT:
            os.close(_namespaces.pop(next(iter(_namespaces))))
        _namespaces[key] = _make_user_namespace(owner, group, user)
    return _namespaces[key]


def _make_user_namespace(owner: int, group: int, user: int) -> int:
    made, told = os.pipe()
    holder = os.fork()
    if holder == 0:
        try:
            unshare(NEW_USERS)
            os.write(told, b'.')
            signal.pause()
        finally:
            os._exit(1)
    try:
        os.close(told)
        os.read(made, 1)
        for kind, inside in (('uid', owner), ('gid', group)):
            with open(f'/proc/{holder}/{kind}_map', 'w') as file:
                file.write(f'{inside} {user} 1\n')
        return os.open(f'/proc/{holder}/ns/user', os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(made)
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
