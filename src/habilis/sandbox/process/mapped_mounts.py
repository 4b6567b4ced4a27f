"""Mounts for a guest of root, which runs as a user of its own.

The mounts are mapped: their owner is that user inside, and stays the same on disk. They exist only in the process that
becomes bubblewrap, so nothing of them is left behind.
"""

import contextlib
import ctypes
import os
import random
import subprocess
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from habilis.sandbox.contract import Mount

FIRST_USER, USERS = 0x6000_0000, 0x0FFF_FFFF
"""Where the user of a guest is chosen from, at random: nobody else has these."""

_libc = ctypes.CDLL(None, use_errno=True)
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE, _CLOEXEC, _EMPTY_PATH, _FROM_EMPTY_PATH = 1, os.O_CLOEXEC, 0x1000, 0x4
_IDMAP = 0x0010_0000
_NEW_MOUNTS, _NEW_USERS = 0x0002_0000, 0x1000_0000
_RECURSIVE_PRIVATE = 0x4000 | (1 << 18)
_HERE = -100


@dataclass(frozen=True, kw_only=True)
class MappedMounts:
    """Mounts that are not attached yet, with the paths they will cover."""

    user: int | None = None
    """The user of the guest; None to stay root, without capabilities."""

    trees: tuple[tuple[int, bytes], ...] = ()

    def attach(self) -> None:
        """Cover the folders with their mapped mounts, in a mount namespace of this process. Runs after `fork`."""
        _check(_libc.unshare(_NEW_MOUNTS))
        _check(_libc.mount(None, b'/', None, ctypes.c_ulong(_RECURSIVE_PRIVATE), None))
        for tree, path in self.trees:
            _check(_libc.syscall(_MOVE_MOUNT, tree, b'', _HERE, path, _FROM_EMPTY_PATH))


@contextlib.contextmanager
def map_mounts(mounts: Sequence[Mount]) -> Generator[MappedMounts]:
    """The mounts for a new user. Where the file system cannot map them, the guest is their owner instead."""
    user = FIRST_USER + random.SystemRandom().randrange(USERS)
    trees: list[tuple[int, bytes]] = []
    try:
        try:
            for path in sorted({os.fspath(mount.source) for mount in mounts}):  # outer folders before inner ones
                trees.append((_mapped(path, user), os.fsencode(path)))  # noqa: PERF401 - closed below if one fails
            yield MappedMounts(user=user, trees=tuple(trees))
        except _Unmapped:
            owners = {os.stat(mount.source).st_uid for mount in mounts if mount.writable}
            yield MappedMounts(user=owners.pop() if len(owners) == 1 and 0 not in owners else None)
    finally:
        for tree, _ in trees:
            os.close(tree)


class _Unmapped(Exception):
    """The file system cannot map users."""


def _mapped(path: str, user: int) -> int:
    """A detached copy of a mount, whose owner is the user. Raises `_Unmapped`."""
    tree = _check(_libc.syscall(_OPEN_TREE, _HERE, os.fsencode(path), _CLONE | _CLOEXEC))
    info = os.stat(path)
    try:
        with _user_namespace(info.st_uid, info.st_gid, user) as namespace:
            attributes = (ctypes.c_uint64 * 4)(_IDMAP, 0, 0, namespace)
            _check(_libc.syscall(_MOUNT_SETATTR, tree, b'', _EMPTY_PATH, attributes, ctypes.c_size_t(32)))
    except OSError as error:
        os.close(tree)
        raise _Unmapped from error
    return tree


@contextlib.contextmanager
def _user_namespace(owner: int, group: int, user: int) -> Generator[int]:
    """A user namespace that maps the ids on disk to those of the guest, and nothing else."""
    holder = subprocess.Popen(
        ['/bin/cat'],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={},
        preexec_fn=_enter_user_namespace,  # noqa: PLW1509 - it only makes a system call
    )
    try:
        for kind, inside in (('uid', owner), ('gid', group)):
            with open(f'/proc/{holder.pid}/{kind}_map', 'w') as file:
                file.write(f'{inside} {user} 1\n')
        namespace = os.open(f'/proc/{holder.pid}/ns/user', os.O_RDONLY | os.O_CLOEXEC)
    finally:
        holder.communicate()
    try:
        yield namespace
    finally:
        os.close(namespace)


def _enter_user_namespace() -> None:
    _check(_libc.unshare(_NEW_USERS))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
