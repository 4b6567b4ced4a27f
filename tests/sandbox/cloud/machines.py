"""Machines of a cloud, as the tests have them: commands in bubblewrap, each as root of an own system."""

import contextlib
import os
import subprocess
import sys
from pathlib import PurePosixPath

from habilis.sandbox.process.bubblewrap import find_bubblewrap, installed_packages

CHUNK = 1 << 15
_CAPABILITIES = ('SETUID', 'SETGID', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'KILL', 'SYS_RESOURCE')


def start_command(*command: str) -> 'subprocess.Popen[bytes]':
    """Start a command in a machine of its own, which ends with it."""
    program = find_bubblewrap()
    assert program is not None
    options = ['--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts', '--die-with-parent', '--clearenv']
    options += ['--setenv', 'PATH', f'{sys.base_prefix}/bin:/usr/bin:/bin', '--cap-drop', 'ALL']
    options += [option for name in _CAPABILITIES for option in ('--cap-add', f'CAP_{name}')]
    for path in ('/usr', '/bin', '/lib', '/lib64'):
        options += ['--symlink', os.readlink(path), path] if os.path.islink(path) else ['--ro-bind-try', path, path]
    if not sys.base_prefix.startswith('/usr'):
        for parent in reversed(PurePosixPath(sys.base_prefix).parents[:-1]):
            options += ['--perms', '0755', '--dir', str(parent)]  # bubblewrap copies the host's rights
        options += ['--ro-bind', sys.base_prefix, sys.base_prefix]
    for folder in installed_packages():
        options += ['--tmpfs', folder]
    options += ['--proc', '/proc', '--dev', '/dev', '--perms', '1777', '--tmpfs', '/tmp', '--chdir', '/']
    return subprocess.Popen(
        [program, *options, '--', *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def read_some(process: 'subprocess.Popen[bytes]') -> bytes:
    """What a command has written to stdout; nothing at its end, when its pipes are closed."""
    assert process.stdin is not None
    assert process.stdout is not None
    data = os.read(process.stdout.fileno(), CHUNK)
    if not data:
        process.wait()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
    return data


def write_all(process: 'subprocess.Popen[bytes]', data: bytes) -> None:
    """Write to the stdin of a command."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ValueError):  # it has ended
        process.stdin.write(data)
        process.stdin.flush()
