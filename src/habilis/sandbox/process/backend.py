"""The `process` backend."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

from packaging.tags import platform_tags

from habilis.core.errors import SandboxError
from habilis.sandbox.contract import Guest, GuestSpec, Mount, PythonTarget
from habilis.sandbox.files.temporary_folders import temporary_folder
from habilis.sandbox.host.guest_folder import guest_folder
from habilis.sandbox.host.pipe_guest import PipeGuest
from habilis.sandbox.options import PACKAGES
from habilis.sandbox.process import bubblewrap, mapped_mounts, proxy, seatbelt, users
from habilis.sandbox.process.broker_client import INSIDE, broker, python, python_command
from habilis.sandbox.process.confinement import Confinement
from habilis.sandbox.process.fork_checks import ForkRefused, only_process
from habilis.sandbox.process.guest import DEPTH_OF_BUBBLEWRAP, Origin, ProcessGuest, Streams, mount_json
from habilis.sandbox.process.levels import Level, find_level
from habilis.sandbox.process.watch import is_idle, note_threads, watch
from habilis.sandbox.process.zygotes import Environment, Zygotes

_BUBBLEWRAP = ('--args', '5', '--')  # its arguments are not to be seen in /proc/1/cmdline
_DESCRIPTORS: dict[str, object] = {'stdout': 3, 'control': 4, 'channel': (6, 7)}
"""Numbers of those that a guest is passed. Bubblewrap keeps its standard streams open, also when the guest has moved on
and ended: so the channel is not among them."""

_ZYGOTE_MB = 1 << 20
"""A zygote has practically no limit of the kernel: each of its forks has one. The watch keeps it."""


class ProcessBackend:
    """Python in a process, isolated by Linux: it runs native packages, and other programs."""

    runs_between_requests = True

    def __init__(self, allow_weak: bool = False) -> None:
        self._level: Level = find_level(allow_weak=allow_weak)
        self.isolation = self._level.description
        self.why_no_processes = self._level.why_no_processes
        self.has_processes = not self.why_no_processes
        version = f'{sys.version_info.major}.{sys.version_info.minor}'
        self.python = PythonTarget(version=version, platforms=tuple(platform_tags()))
        self._zygotes = Zygotes(self._start_zygote, self._confinement)

    def start(self, spec: GuestSpec) -> Guest:
        """Start a guest, and wait until it is confined."""
        if spec.limits.cpu < 1 and not (self._level.groups and self._level.groups.limit_cpu):
            msg = 'the process sandbox cannot slow code down without cgroups: leave Limits.cpu at 1'
            raise SandboxError(msg)
        guest = self._start(spec)
        note_threads(guest)
        return guest

    def is_idle(self, guest: Guest) -> bool:
        """Whether no code of a guest runs while no request does."""
        return isinstance(guest, PipeGuest) and is_idle(guest)

    def _start(self, spec: GuestSpec) -> PipeGuest:
        if self._level.bubblewrap is None:
            return broker.run_in_thread(lambda: self._start_alone(spec))
        return self._zygotes.fork(spec) or self._start_isolated(spec)

    def _start_isolated(self, spec: GuestSpec) -> ProcessGuest:
        if spec.network is None:
            guest = self._spawn(spec, self._confinement(spec), spec.mounts)
        else:  # the proxy serves a socket of this network: a fork has another one
            channel, end_proxy = proxy.serve(spec.network)
            try:
                with channel:
                    network = {'channel': channel.fileno(), 'local': not spec.network.names_loopback}
                    confinement = replace(self._confinement(spec), listen=False)
                    guest = self._spawn(spec, confinement, spec.mounts, proxy=network)
            except BaseException:
                end_proxy()
                raise
            guest.on_close(end_proxy)
        return guest

    def _start_zygote(self, spec: GuestSpec, environment: Environment) -> ProcessGuest:
        """A guest without a workspace that has imported its packages. Its forks are confined further."""
        confinement = replace(self._confinement(spec), memory_mb=_ZYGOTE_MB, files=False, limit_processes=False)
        packages = PACKAGES if environment.packages else ''
        guest = self._spawn(spec, confinement, environment.packages, tuple(environment.targets), packages)
        try:
            if not guest.can_fork:
                raise ForkRefused('this system has no forks of sandboxes')
            main = _main_process(guest.pid)
        except (ForkRefused, OSError) as error:
            guest.close()
            msg = f'no zygote: {error}'
            raise SandboxError(msg) from error
        guest.origin = replace(guest.origin, main=main)
        return guest

    def _confinement(self, spec: GuestSpec) -> Confinement:
        return Confinement(
            memory_mb=spec.limits.memory_mb,
            writable=[*bubblewrap.WRITABLE, *(mount.target for mount in spec.mounts if mount.writable)],
            limit_processes=self._level.counts_processes,
            landlock=self._level.landlock > 0,
            listen=True,
        )

    def _spawn(
        self,
        spec: GuestSpec,
        confinement: Confinement,
        mounts: Sequence[Mount],
        later: Sequence[str] = (),
        preload: str = '',
        proxy: dict[str, int] | None = None,
    ) -> ProcessGuest:
        """Start bubblewrap, through the broker."""
        assert self._level.bubblewrap is not None
        options = bubblewrap.options(guest_folder(*INSIDE), mounts, spec.limits.memory_mb, later)
        groups = self._level.groups
        group = groups.make(spec.limits) if groups else None
        streams = Streams(1)
        try:
            command = [self._level.bubblewrap, *_BUBBLEWRAP, *python_command(bubblewrap.GUEST, 'inside', 'start')]
            network = {} if proxy is None else {'proxy': {**proxy, 'channel': 8}}
            settings = _settings(confinement, {}, preload) | _DESCRIPTORS | network
            request = {'op': 'spawn', 'command': command, 'settings': settings}
            request |= {'group': group and str(group.folder), 'mounts': [mount_json(mount) for mount in mounts]}
            with _file('\0'.join(options).encode()) as arguments, open(os.devnull, 'r+b') as nothing:
                requests, answers, stdout, stderr, control, status = streams.passed
                passed = [status, nothing.fileno(), nothing.fileno(), stderr, stdout, control]
                passed += [arguments.fileno(), requests, answers, *([proxy['channel']] if proxy else [])]
                with broker.ask(request, passed) as asked:
                    streams.close_passed()
                    answer, [handle] = asked.read()
        except BaseException:
            streams.close()
            if group is not None:
                group.close()
            raise
        user = bubblewrap.NOBODY if os.geteuid() else answer['user'] or 0
        private = bubblewrap.private_folders(spec.limits.memory_mb)
        made = Origin(limits=spec.limits, private_folders=private, user=user, groups=groups, depth=DEPTH_OF_BUBBLEWRAP)
        guest = ProcessGuest(streams.contained(answer['pid'], handle), streams, made, group)
        watch(guest, spec.limits)  # a zygote, too: it imports packages
        guest.wait_until_ready()
        return guest

    def _start_alone(self, spec: GuestSpec) -> PipeGuest:
        """Without bubblewrap: the paths of the host, of which Landlock allows few."""
        places = {mount.target: str(mount.source) for mount in spec.mounts}
        folder = guest_folder(*INSIDE)
        if self._level.seatbelt:
            return self._start_on_mac(spec, folder, places)
        private, remove = temporary_folder()
        try:
            owner = _owner(spec.mounts)
            if owner is not None:
                with contextlib.suppress(PermissionError):  # root of a container may lack the right
                    os.chown(private, *owner)
            readable = [*bubblewrap.readable_system(), sys.base_prefix, str(folder), *places.values()]
            # Paths of the host keep their meaning, also below the path of a mount.
            places = {path: path for path in (*readable, str(private))} | {'/tmp': str(private)} | places
            confinement = Confinement(
                memory_mb=spec.limits.memory_mb,
                readable=readable,
                writable=['/dev/null', str(private), *(str(mount.source) for mount in spec.mounts if mount.writable)],
                user=_new_user() if owner is not None else None,
                owner=owner,
                alone=self._level.landlock > 0,
                limit_processes=False,
                landlock=self._level.landlock > 0,
                seccomp=self._level.landlock > 0,
            )
            environment = bubblewrap.environment() | {'HOME': str(private), 'TMPDIR': str(private)}
            guest = _run([], str(folder), _settings(confinement, places, ''), environment)
        except BaseException:
            remove()
            raise
        guest.on_close(weakref.finalize(guest, remove))  # once, however often it is closed
        watch(guest, spec.limits, own_network=False)
        return guest

    def _start_on_mac(self, spec: GuestSpec, folder: Path, places: dict[str, str]) -> PipeGuest:
        writable = [str(mount.source) for mount in spec.mounts if mount.writable]
        readable = [sys.base_prefix, str(folder), *places.values()]
        prefix = seatbelt.command(seatbelt.make_profile(python(), readable, writable), bubblewrap.environment())
        confinement = Confinement(memory_mb=spec.limits.memory_mb, limit_processes=False, landlock=False)
        return _run(prefix, str(folder), _settings(confinement, places, ''), {})


def _settings(confinement: Confinement, places: dict[str, str], preload: str) -> dict[str, object]:
    return {'confinement': asdict(confinement), 'places': places, 'preload': preload}


def _run(prefix: list[str], folder: str, settings: dict[str, object], environment: dict[str, str]) -> PipeGuest:
    """Start a guest without bubblewrap, and wait until it is confined."""
    read, write = os.pipe()  # for output that bypasses its kernel
    try:
        command = [*prefix, *python_command(folder, 'inside', 'start'), json.dumps({**settings, 'stdout': write})]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[write],
            env=environment,
            cwd='/',
            start_new_session=not prefix,
        )
    except BaseException:
        os.close(read)
        raise
    finally:
        os.close(write)
    guest = PipeGuest(process, stdout=read)
    guest.wait_until_ready()
    return guest


def _main_process(first: int) -> int:
    """The interpreter of a zygote. Raises `ForkRefused` if it has threads, or other processes."""
    line = only_process(first, DEPTH_OF_BUBBLEWRAP)
    for target in line:
        target.close()
    return line[-1].pid


def _file(content: bytes) -> IO[bytes]:
    """A file without a name, to be read by another process."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(content)
    file.seek(0)
    return file


def _owner(mounts: tuple[Mount, ...]) -> tuple[int, int] | None:
    """The user and group of files of a guest of root: those of what it may write, or root. None if root is not here."""
    if os.geteuid() != 0:
        return None
    found = [Path(mount.source).stat() for mount in mounts if mount.writable]
    owners = {(info.st_uid, info.st_gid) for info in found}
    return owners.pop() if len(owners) == 1 else (0, 0)


def _new_user() -> int | None:
    """The user that a guest of root is to other processes; None to stay root, where a container has no other."""
    if not users.may_become_others():
        return None
    return next(filter(mapped_mounts.exists, (mapped_mounts.new_user(), bubblewrap.NOBODY)), None)
