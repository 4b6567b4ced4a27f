"""Machines of a cloud, as the tests have them: bubblewrap with a user root, who may write to the whole system."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import PurePosixPath

from habilis.sandbox.contract import Guest, GuestSpec, Mount
from habilis.sandbox.host.guest_folder import guest_folder
from habilis.sandbox.host.pipe_guest import PipeGuest
from habilis.sandbox.process.bubblewrap import find_bubblewrap, installed_packages

_CAPABILITIES = ('SETUID', 'SETGID', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'KILL', 'SYS_RESOURCE')
_GUEST = "import sys; sys.path.append('/guest'); from habilis.sandbox.guest.__main__ import main; main({})"


class MachineBackend:
    """A backend for `habilis serve sandboxes`, whose guests are root of a system of their own."""

    isolation = 'bubblewrap'
    has_processes = True

    def start(self, spec: GuestSpec) -> Guest:
        """Start a guest. Its limits are those of the machine that runs the tests."""
        mounts = (*spec.mounts, Mount(source=guest_folder(), target='/guest'))
        return PipeGuest(start_command(['python3', '-c', _GUEST], mounts))


def start_command(command: Sequence[str], mounts: Sequence[Mount] = ()) -> 'subprocess.Popen[bytes]':
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
    for mount in mounts:
        options += ['--bind' if mount.writable else '--ro-bind', str(mount.source), mount.target]
    return subprocess.Popen(
        [program, *options, '--', *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
