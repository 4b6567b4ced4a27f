"""A guest of this backend, which can be forked, and what keeps it alive."""

import contextlib
import functools
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.contract import GuestDied, HostSide, Interrupted, Mount, Stream
from habilis.sandbox.guest.children import FORK
from habilis.sandbox.host.pipe_guest import PipeGuest
from habilis.sandbox.process import kernel_calls
from habilis.sandbox.process.broker_client import Contained, broker
from habilis.sandbox.process.bubblewrap import private_folders
from habilis.sandbox.process.cgroups import Group, Groups
from habilis.sandbox.process.confinement import Confinement
from habilis.sandbox.process.watch import TOO_MUCH, watch

logger = logging.getLogger('habilis.sandbox')
FORK_SECONDS = 15.0
DEPTH_OF_FORK, DEPTH_OF_BUBBLEWRAP = 1, 2
"""Levels of processes between the first one of a guest and its interpreter."""


class Stem:
    """A process whose namespaces contain those of guests. It ends when the last one that holds it is closed."""

    def __init__(self, end: Callable[[], None], above: 'Stem | None') -> None:
        self._end = end
        self._above = above
        self._lock = threading.Lock()
        self._count = 0

    def hold(self) -> 'Stem':
        """Keep it alive until `release`."""
        with self._lock:
            self._count += 1
        return self

    def release(self) -> None:
        """The opposite of `hold`."""
        with self._lock:
            self._count -= 1
            if self._count:
                return
        self._end()
        if self._above is not None:
            self._above.release()


@dataclass(frozen=True, kw_only=True)
class Origin:
    """How a guest was made, for its forks."""

    limits: Limits
    private_folders: dict[str, str]
    """Sizes of the private folders, by path."""

    user: int
    groups: Groups | None = None
    main: int | None = None
    """The process of a zygote that is forked."""

    depth: int = DEPTH_OF_FORK
    family: threading.Lock = field(default_factory=threading.Lock)
    """Only one fork at a time: all forks of one start have the same listener."""


class Streams:
    """New pipes for a guest: the ends of the host as attributes, those of the guest in `passed`."""

    def __init__(self, statuses: int) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self.stdout, stdout = os.pipe()
        self._stderr, stderr = os.pipe()
        self.control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pairs = [os.pipe() for _ in range(statuses)]
        self.statuses = [read for read, _ in pairs]
        self.passed = [requests, answers, stdout, stderr, control.detach(), *(write for _, write in pairs)]
        self.inodes = [(info.st_dev, info.st_ino) for info in map(os.fstat, self.passed[:5])]
        """Of the descriptors that the guest has, and its first process has not."""

    def close_passed(self) -> None:
        """Close the ends of the guest."""
        for descriptor in self.passed:
            os.close(descriptor)
        self.passed = []

    def close(self) -> None:
        """Close everything, after a failure."""
        self.close_passed()
        self.control.close()
        for descriptor in (self._requests, self._answers, self.stdout, self._stderr, *self.statuses):
            os.close(descriptor)

    def contained(self, pid: int, handle: int) -> Contained:
        """The process that has the other ends."""
        opened = (os.fdopen(self._requests, 'wb'), os.fdopen(self._answers, 'rb'), os.fdopen(self._stderr, 'rb'))
        return Contained(pid, handle, self.statuses[0], opened)


class _QuietHost:
    """The host of the request to fork: no code of a cell runs during it."""

    def answer(self, message: str) -> str:
        raise Interrupted

    def write(self, stream: Stream, data: bytes) -> None:
        """Discard output."""

    def check(self) -> None:
        """Nothing."""


class ProcessGuest(PipeGuest):
    """A guest in namespaces of its own."""

    def __init__(self, process: Contained, streams: Streams, origin: Origin, group: Group | None) -> None:
        super().__init__(process, stdout=streams.stdout)
        self._group = group
        self._contained = process
        self._control = streams.control
        self._inodes = streams.inodes
        self._listener: int | None = None
        self._stem: Stem | None = None
        self.origin = origin

    @property
    def pid(self) -> int:
        """The id of its first process."""
        return self._contained.pid

    @property
    def has_ended(self) -> bool:
        """Whether its first process has ended."""
        return self._contained.has_ended

    def wait_until_ready(self) -> None:
        """Wait until it is confined. Raises `SandboxError` if it cannot be."""
        try:
            super().wait_until_ready()
            if self._listener is None:
                _, found = kernel_calls.receive(self._control.fileno())
                self._listener = found[0] if found else None
        except BaseException:
            self.close()
            raise

    @property
    def can_fork(self) -> bool:
        """Whether the kernel and this user's rights allow forks."""
        return self._listener is not None and broker.can_fork

    def close(self) -> None:
        """Kill its processes and free its pipes."""
        super().close()
        self._control.close()
        if self._listener is not None:
            os.close(self._listener)
            self._listener = None
        stem, self._stem = self._stem, None
        if stem is not None:
            stem.release()
        group, self._group = self._group, None
        if group is not None:
            group.close()

    def _death(self, host: HostSide) -> GuestDied:
        death = super()._death(host)
        if self._group is not None and self._group.has_run_out_of_memory():
            return GuestDied('memory', TOO_MUCH)
        return death

    def become_stem(self) -> Stem:
        """From now on this guest only makes forks, which keep it alive."""
        return Stem(self.close, None)

    def fork_new(self, limits: Limits, mounts: Sequence[Mount], confinement: Confinement, stem: Stem) -> 'ProcessGuest':
        """A fork for another sandbox; this guest must have run no code."""
        origin = replace(self.origin, limits=limits, private_folders=private_folders(limits.memory_mb))
        twin, _ = self._fork(origin, mounts, {'confinement': asdict(confinement), 'live': False})
        twin._stem = stem.hold()
        twin.wait_until_ready()
        return twin

    def fork(self) -> 'ProcessGuest | None':
        """A fork that has all its variables; None if it must be made by a snapshot. Raises `GuestDied`."""
        if not self.can_fork:
            return None
        try:
            twin, moved = self._fork(self.origin, (), {'confinement': {'memory_mb': 0}, 'live': True})
            stem = Stem(functools.partial(_end, self._contained), self._stem)
            self._contained = self._process = self._contained.continued_by(*moved)
            self._stem, twin._stem = stem.hold(), stem.hold()
            self.origin = twin.origin
            twin.wait_until_ready()
        except SandboxError as error:
            logger.info('the sandbox is forked by a snapshot: %s', error)
            return None
        return twin

    def _fork(
        self, origin: Origin, mounts: Sequence[Mount], settings: dict[str, Any]
    ) -> 'tuple[ProcessGuest, tuple[int, int, int]]':
        group = origin.groups.make(origin.limits) if origin.groups else None
        streams = Streams(2)
        request = self._fork_request(origin, mounts) | {'settings': settings, 'group': group and str(group.folder)}
        try:
            with origin.family:
                if self._listener is None:  # another fork has found that it has ended
                    raise SandboxError('the guest to be forked has ended')
                passed = [self._listener, self._control.fileno(), streams.control.fileno(), *streams.passed]
                with broker.ask(request, passed) as asked:
                    streams.close_passed()
                    try:
                        self._request_fork()
                    except GuestDied:
                        with contextlib.suppress(SandboxError):  # the broker must be done before the next fork
                            asked.read()
                        raise
                    answer, handles = asked.read()
                listener = os.dup(self._listener)
        except BaseException:
            streams.close()
            if group is not None:
                group.close()
            raise
        pids: list[int] = answer['pids']
        process = streams.contained(pids[0], handles[0])
        twin = ProcessGuest(process, streams, replace(origin, main=None, depth=DEPTH_OF_FORK), group)
        twin._listener = listener
        watch(twin, origin.limits)
        if len(pids) == 1:
            os.close(streams.statuses[1])
            return twin, (0, -1, -1)
        return twin, (pids[1], handles[1], streams.statuses[1])

    def _fork_request(self, origin: Origin, mounts: Sequence[Mount]) -> dict[str, object]:
        return {
            'op': 'fork',
            'first': self.pid,
            'depth': origin.depth,
            'main': origin.main,
            'user': origin.user,
            'inodes': self._inodes,
            'tmpfs': origin.private_folders,
            'mounts': [mount_json(mount) for mount in mounts],
        }

    def _request_fork(self) -> None:
        timer = threading.Timer(FORK_SECONDS, self.interrupt)
        timer.start()
        try:
            self.enter(FORK, _QuietHost())
        finally:
            timer.cancel()


def mount_json(mount: Mount) -> dict[str, object]:
    """A mount as the broker takes it."""
    return {'source': os.fspath(mount.source), 'target': mount.target, 'writable': mount.writable}


def _end(process: Contained) -> None:
    process.kill()
    process.wait()
