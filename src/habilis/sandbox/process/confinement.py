"""What the guest does to itself before the first cell: limits, Landlock and seccomp.

Runs inside, with the standard library only. Nothing of it can be undone by the code that runs later.
"""

import contextlib
import ctypes
import os
import resource
import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from habilis.sandbox.process import users
from habilis.sandbox.process.kernel_calls import check, install_filter, libc
from habilis.sandbox.process.seccomp import seccomp_filter

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_READ = 0b1101  # execute, read a file, list a folder
_WRITE = 0b1011110110010  # the other rights of the first version, except making devices
_OF_FILES = 0b1100000000000111
"""The rights that a rule about a file may have."""

_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
"""Number of rights to files by version of Landlock; 16 later."""

FILE_BYTES = 1 << 30
OPEN_FILES = 1024
PROCESSES = 128
MAPPED_MB = 2048
"""Address space beyond the memory limit, for libraries and reserved memory."""


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """What a guest may do. Travels to it as JSON."""

    memory_mb: int
    readable: Sequence[str] = ('/',)
    writable: Sequence[str] = ()
    user: int | None = None
    """User to become, where the host is root."""

    owner: Sequence[int] | None = None
    """User and group of its files, where the host is root and there are no namespaces."""

    alone: bool = False
    """There are no namespaces: the guest may have no other process and no socket, and installs the filter itself."""

    limit_processes: bool = True
    landlock: bool = True
    files: bool = True
    """Whether Landlock restricts files. A zygote leaves that to its forks: they have other folders."""

    seccomp: bool = True
    listen: bool = False
    """Let the broker allow a fork, which makes namespaces."""


def confine(confinement: Confinement) -> int | None:
    """Confine this process for good. Raises `OSError` if a layer that was promised is refused.

    Returns the descriptor on which the broker decides about forks; None without `listen`, or where the kernel has none.
    """
    kept = 0
    if confinement.owner is not None:
        users.become(confinement.user, confinement.owner)
        kept = users.missing_rights(confinement.readable, confinement.writable)
    elif confinement.user is not None:
        os.setgroups([])
        os.setresgid(confinement.user, confinement.user, confinement.user)
        os.setresuid(confinement.user, confinement.user, confinement.user)
    if confinement.alone:
        _prctl(_PR_SET_PDEATHSIG, 9)
    if sys.platform == 'linux':
        users.keep_capabilities(kept)
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _prctl(_PR_SET_DUMPABLE, 0)  # hides /proc/self/environ and mem, and allows no ptrace
    _limit(confinement)
    if confinement.landlock:
        _restrict(confinement)
    if not confinement.seccomp:
        return None
    if confinement.listen:
        with contextlib.suppress(OSError):  # an old kernel, or a filter with a listener around this process
            return install_filter(seccomp_filter(forks=True), listen=True)
    install_filter(seccomp_filter(alone_with_pid=os.getpid() if confinement.alone else None), listen=False)
    return None


def confine_fork(confinement: Confinement, *, is_live: bool) -> None:
    """Confine a fork that is in namespaces of its own. It has inherited the filter and, if its origin was live, all
    the rest; but it has capabilities in these namespaces."""
    drop_capabilities()
    _prctl(_PR_SET_DUMPABLE, 0)
    if is_live:
        return
    _limit(confinement)
    if confinement.landlock:
        _restrict(confinement)


def landlock_version() -> int:
    """The version of Landlock in this kernel; 0 if there is none."""
    return max(0, libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def _limit(confinement: Confinement) -> None:
    memory = confinement.memory_mb << 20
    limits = {
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    if sys.platform == 'linux':  # macOS refuses these, or does not enforce them
        limits |= {resource.RLIMIT_DATA: memory, resource.RLIMIT_AS: memory + (MAPPED_MB << 20)}
    if confinement.limit_processes:
        limits[resource.RLIMIT_NPROC] = PROCESSES
    for kind, wanted in limits.items():
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))


def _restrict(confinement: Confinement) -> None:
    version = landlock_version()
    handled = (1 << _RIGHTS_BY_VERSION.get(version, 16)) - 1 if confinement.files else 0
    scopes = 0b11 if version >= 6 else 0  # abstract sockets, signals
    if not (handled or scopes):
        return
    attributes = struct.pack('=QQQ', handled, 0, scopes)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = check(libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)))
    refer_truncate_ioctl = 0b111 << 13
    if handled:
        _allow(ruleset, confinement.readable, _READ & handled)
        _allow(ruleset, confinement.writable, (_READ | _WRITE | refer_truncate_ioctl) & handled)
    check(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow(ruleset: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                allowed = rights if os.path.isdir(path) else rights & _OF_FILES
                rule = struct.pack('=Qi', allowed, opened)
                check(libc.syscall(_ADD_RULE, ruleset, 1, rule, ctypes.c_uint32(0)))
            finally:
                os.close(opened)


def drop_capabilities() -> None:
    """Give up all capabilities."""
    users.keep_capabilities(0)


def _prctl(option: int, value: int) -> None:
    check(libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0))
