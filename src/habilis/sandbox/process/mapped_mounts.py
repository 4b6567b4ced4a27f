"""Mounts for a guest of root, which runs as a user of its own.

The mounts are mapped: their owner is that user inside, and stays the same on disk. They exist only in the mount
namespaces of the guest, so nothing of them is left behind. Runs in the broker.
"""

import contextlib
import os
import signal
from collections.abc import Generator, Sequence

from habilis.sandbox.process.kernel_calls import MAPPED, NEW_USERS, copy_mount, set_mount_attributes, unshare

FIRST_USER, USERS = 0x6000_0000, 0x0FFF_FFFF
"""Where the user of a guest is chosen from, at random: nobody else has these."""

NOBODY = 65534


def new_user() -> int:
    """A user that nobody else has."""
    return FIRST_USER + int.from_bytes(os.urandom(8), 'little') % USERS


def owner_of(writable: Sequence[str]) -> int | None:
    """The user for folders that cannot be mapped: their owner; None to stay root, without capabilities."""
    owners = {os.stat(path).st_uid for path in writable} or {NOBODY}
    return owners.pop() if len(owners) == 1 and 0 not in owners else None


def mapped_mount(path: str, user: int) -> int:
    """A detached copy of a mount, whose owner is the user. Raises `OSError` where the file system cannot map users."""
    tree = copy_mount(path)
    info = os.stat(path)
    try:
        with _user_namespace(info.st_uid, info.st_gid, user) as namespace:
            set_mount_attributes(tree, MAPPED, namespace)
    except OSError:
        os.close(tree)
        raise
    return tree


@contextlib.contextmanager
def _user_namespace(owner: int, group: int, user: int) -> Generator[int]:
    """A user namespace that maps the ids on disk to those of the guest, and nothing else."""
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
        namespace = os.open(f'/proc/{holder}/ns/user', os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(made)
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
    try:
        yield namespace
    finally:
        os.close(namespace)
