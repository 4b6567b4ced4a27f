"""The `process` backend."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

from packaging.tags import platform_tags

from habilis.core.errors import SandboxError
from habilis.sandbox.contract import Guest, GuestSpec, Mount, PythonTarget
from habilis.sandbox.guest_folder import guest_folder
from habilis.sandbox.options import PACKAGES
from habilis.sandbox.pipe_guest import PipeGuest
from habilis.sandbox.process import bubblewrap, proxy, seatbelt
from habilis.sandbox.process.confinement import Confinement
from habilis.sandbox.process.levels import Level, find_level
from habilis.sandbox.process.mapped_mounts import MappedMounts, map_mounts
from habilis.sandbox.process.seccomp import seccomp_filter
from habilis.sandbox.process.spares import Spares
from habilis.sandbox.process.watch import watch
from habilis.sandbox.workers import after_fork
from habilis.sandbox.workspace import WORKSPACE

INSIDE = tuple(f'sandbox/process/{name}.py' for name in ('confinement', 'inside', 'seccomp'))
START_SECONDS = 60.0
_PROGRAM = 'import sys; sys.path.append({folder!r}); from habilis.sandbox.process.inside import start; start()'


class ProcessBackend:
    """Python in a process, isolated by Linux: it runs native packages, and other programs."""

    def __init__(self, allow_weak: bool = False) -> None:
        self._level: Level = find_level(allow_weak=allow_weak)
        self.isolation = self._level.description
        self.has_processes = self._level.bubblewrap is not None
        version = f'{sys.version_info.major}.{sys.version_info.minor}'
        self.python = PythonTarget(version=version, platforms=tuple(platform_tags()))
        self._spares = Spares(lambda spec: self._start(spec, is_spare=True))

    def start(self, spec: GuestSpec) -> Guest:
        """Start a guest, and wait until it is confined."""
        if spec.limits.cpu < 1:
            msg = 'the process sandbox cannot slow code down: leave Limits.cpu at 1'
            raise SandboxError(msg)
        return self._spares.take(spec) or self._start(spec)

    def _start(self, spec: GuestSpec, *, is_spare: bool = False) -> PipeGuest:
        guest = _spawner.start(lambda: self._spawn(spec, is_spare))
        if guest.read_line(START_SECONDS) != b'ready':
            errors = guest.read_errors().strip()
            guest.close()
            msg = f'the sandbox could not start: {errors.splitlines()[-1] if errors else "it said nothing"}'
            raise SandboxError(msg)
        return guest

    def _spawn(self, spec: GuestSpec, is_spare: bool) -> PipeGuest:
        if self._level.bubblewrap is not None:
            return self._spawn_isolated(spec, self._level.bubblewrap, is_spare)
        return self._spawn_alone(spec, is_spare)

    def _spawn_isolated(self, spec: GuestSpec, program: str, is_spare: bool) -> PipeGuest:
        folder = guest_folder(*INSIDE)
        writable = [mount.target for mount in spec.mounts if mount.writable]
        confinement = Confinement(
            memory_mb=spec.limits.memory_mb,
            writable=[*bubblewrap.WRITABLE, *writable],
            limit_processes=self._level.counts_processes,
            landlock=self._level.landlock > 0,
        )
        with contextlib.ExitStack() as stack:
            mapped = MappedMounts()
            if os.geteuid() == 0:
                mapped = stack.enter_context(map_mounts(spec.mounts))
                confinement = replace(confinement, user=mapped.user)
            rules = stack.enter_context(_file(seccomp_filter()))
            options = bubblewrap.options(folder, spec.mounts, spec.limits.memory_mb, seccomp=rules.fileno())
            arguments = stack.enter_context(_file('\0'.join(options).encode()))  # not in /proc/1/cmdline
            command = [program, '--args', str(arguments.fileno()), '--']
            passed = (rules.fileno(), arguments.fileno())
            settings = _settings(confinement, {}, PACKAGES if is_spare else '')
            closing = contextlib.ExitStack()
            if spec.network is not None:
                channel, end_proxy = proxy.serve(spec.network)
                stack.enter_context(channel)
                closing.callback(end_proxy)
                passed = (*passed, channel.fileno())
                settings['proxy'] = {'channel': channel.fileno(), 'local': not spec.network.names_loopback}
            guest = _run(command, bubblewrap.GUEST, settings, passed, mapped)
        guest.on_close(closing.close)
        watch(guest, spec.limits)
        return guest

    def _spawn_alone(self, spec: GuestSpec, is_spare: bool) -> PipeGuest:
        """Without bubblewrap: the paths of the host, of which Landlock allows few."""
        places = {mount.target: str(mount.source) for mount in spec.mounts}
        if other := [target for target in places if target not in (WORKSPACE, PACKAGES)]:
            msg = f'cannot mount at {other[0]}: that needs bubblewrap and user namespaces (see habilis doctor)'
            raise SandboxError(msg)
        folder = guest_folder(*INSIDE)
        if self._level.seatbelt:
            return self._spawn_on_mac(spec, folder, places, is_spare)
        system = ('/usr', '/bin', '/lib', '/lib64', '/etc/ld.so.cache', '/etc/localtime', '/dev/urandom', '/dev/zero')
        confinement = Confinement(
            memory_mb=spec.limits.memory_mb,
            readable=[*system, sys.base_prefix, str(folder), *places.values()],
            writable=['/dev/null', *(str(mount.source) for mount in spec.mounts if mount.writable)],
            user=_owner(spec.mounts),
            alone=self._level.landlock > 0,
            limit_processes=False,
            landlock=self._level.landlock > 0,
            seccomp=self._level.landlock > 0,
        )
        settings = _settings(confinement, places, places.get(PACKAGES, '') if is_spare else '')
        return _run([], str(folder), settings, (), MappedMounts())

    def _spawn_on_mac(self, spec: GuestSpec, folder: Path, places: dict[str, str], is_spare: bool) -> PipeGuest:
        writable = [str(mount.source) for mount in spec.mounts if mount.writable]
        readable = [sys.base_prefix, str(folder), *places.values()]
        prefix = seatbelt.command(seatbelt.make_profile(_python(), readable, writable), bubblewrap.environment())
        confinement = Confinement(memory_mb=spec.limits.memory_mb, limit_processes=False, landlock=False)
        settings = _settings(confinement, places, places.get(PACKAGES, '') if is_spare else '')
        return _run(prefix, str(folder), settings, (), MappedMounts())


def _python() -> str:
    return os.path.realpath(getattr(sys, '_base_executable', sys.executable))


def _settings(confinement: Confinement, places: dict[str, str], preload: str) -> dict[str, object]:
    return {'confinement': asdict(confinement), 'places': places, 'preload': preload}


def _run(
    prefix: list[str], folder: str, settings: dict[str, object], passed: tuple[int, ...], mapped: MappedMounts
) -> PipeGuest:
    """Start the guest's process; output that bypasses its kernel has pipes of its own."""
    read, write = os.pipe()
    try:
        command = [*prefix, _python(), '-I', '-S', '-B', '-c', _PROGRAM.format(folder=folder)]
        command.append(json.dumps({**settings, 'stdout': write}))
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(write, *passed),
            env={} if prefix else bubblewrap.environment(),
            cwd='/',
            start_new_session=not prefix,
            preexec_fn=mapped.attach if mapped.trees else None,  # noqa: PLW1509 - it only makes system calls
        )
    except BaseException:
        os.close(read)
        raise
    finally:
        os.close(write)
    return PipeGuest(process, stdout=read)


def _file(content: bytes) -> IO[bytes]:
    """A file without a name, to be read by another process."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(content)
    file.seek(0)
    return file


def _owner(mounts: tuple[Mount, ...]) -> int | None:
    """The user that a guest of root becomes: the owner of what it may write; None to stay, without capabilities."""
    if os.geteuid() != 0:
        return None
    owners = {Path(mount.source).stat().st_uid for mount in mounts if mount.writable}
    if not owners:
        return bubblewrap.NOBODY
    return owners.pop() if len(owners) == 1 and 0 not in owners else None


class _Spawner:
    """One thread that starts all guests and never ends: Linux kills a guest when the thread that started it ends."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix='habilis-process')

    def start(self, make: Callable[[], PipeGuest]) -> PipeGuest:
        return self._thread.submit(make).result()


_spawner = _Spawner()
after_fork(_spawner.__init__)
