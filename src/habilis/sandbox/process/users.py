"""Who a guest of root is, where there are no namespaces: one user to other processes, another one to files.

To other processes it is a user that nobody else has. Its files belong to the owner of the folders that it may write.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Sequence

from habilis.sandbox.process.kernel_calls import check, libc

_PASS_PERMISSIONS, _KILL, _SET_GROUP, _SET_USER = 1 << 1, 1 << 5, 1 << 6, 1 << 7
_CAPSET = {'x86_64': 126, 'aarch64': 91}
_KEEP_CAPABILITIES = 8


def may_become_others() -> bool:
    """Whether this process may start and kill processes of other users. In a container, root may lack that right."""
    needed = _KILL | _SET_GROUP | _SET_USER
    return _capabilities() & needed == needed


def become(user: int | None, owner: Sequence[int]) -> None:
    """Be this user to other processes (None: stay root), and the owner, a user and a group, to files.

    All capabilities are off then. `missing_rights` says if one is needed.
    """
    has = _capabilities() & (_PASS_PERMISSIONS | _SET_GROUP | _SET_USER)
    if user is not None:
        check(libc.prctl(_KEEP_CAPABILITIES, ctypes.c_ulong(1), 0, 0, 0))
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        _set_capabilities(has, has)
        libc.setfsgid(owner[1])
        libc.setfsuid(owner[0])
    _set_capabilities(has & _PASS_PERMISSIONS, 0)


def missing_rights(readable: Iterable[str], writable: Iterable[str]) -> int:
    """The capability to pass the permissions of files, if this process has it and cannot use all these without it."""
    modes = [(path, os.R_OK) for path in readable] + [(path, os.R_OK | os.W_OK) for path in writable]
    return 0 if all(_may_use(path, mode) for path, mode in modes) else _capabilities() & _PASS_PERMISSIONS


def keep_capabilities(kept: int) -> None:
    """Give up all other capabilities."""
    _set_capabilities(kept, kept)


def _may_use(path: str, mode: int) -> bool:
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return os.access(path, mode | os.X_OK if is_folder else mode, effective_ids=True)


def _set_capabilities(permitted: int, effective: int) -> None:
    header, sets = struct.pack('=Ii', 0x20080522, 0), struct.pack('=6I', effective, permitted, 0, 0, 0, 0)
    check(libc.syscall(_CAPSET[os.uname().machine], header, sets))


def _capabilities() -> int:
    with open('/proc/self/status') as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith('CapPrm:'))
