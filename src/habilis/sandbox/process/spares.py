"""A guest that is started ahead, for the next sandbox with the same settings and folders.

Each guest has an isolation of its own, so none is made by forking another. But whoever asks twice for the same will
often ask again: the forks and restarts of a sandbox, the runs of an agent, the calls of a library tool.
"""

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from habilis.core.errors import SandboxError
from habilis.sandbox.contract import GuestSpec
from habilis.sandbox.pipe_guest import PipeGuest
from habilis.sandbox.workers import Interruptible, stop_at_exit

IDLE_SECONDS = 60.0
"""A spare that nobody takes is closed after this time."""

Start = Callable[[GuestSpec], PipeGuest]


@dataclass(frozen=True)
class _Key:
    """What must be the same. The folders are identified by their inodes: a path may be another folder by now."""

    spec: GuestSpec
    folders: tuple[tuple[int, int, int, int], ...]

    @classmethod
    def of(cls, spec: GuestSpec) -> '_Key':
        infos = [os.stat(mount.source) for mount in spec.mounts]
        return cls(spec, tuple((info.st_dev, info.st_ino, info.st_uid, info.st_gid) for info in infos))


class Spares(Interruptible):
    """At most one spare. `start` starts a guest with its packages imported."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._last: _Key | None = None
        self._spare: tuple[_Key, PipeGuest] | None = None
        self._is_starting = False
        self._expiry: threading.Timer | None = None
        stop_at_exit(self)

    def take(self, spec: GuestSpec) -> PipeGuest | None:
        """The spare, if it fits. Starts the next one if this was asked for before."""
        try:
            key = _Key.of(spec)
        except OSError:  # the start will say it better
            return None
        found, other = None, None
        with self._lock:
            if self._spare is not None and self._spare[0] == key:
                found, self._spare = self._spare[1], None
            is_repeated, self._last = key == self._last, key
            if is_repeated and not self._is_starting and self._spare is None:
                self._is_starting = True
                threading.Thread(target=self._prepare, args=(key,), name='habilis-spare', daemon=True).start()
            elif is_repeated and self._spare is not None:
                other, self._spare = self._spare[1], None  # nobody wants that one any more
        if found is not None and not found.is_alive():
            found, other = None, found
        if other is not None:
            other.close()
        return found

    def interrupt(self) -> None:
        """Close the spare, at exit."""
        self.discard()

    def discard(self) -> None:
        """Close the spare."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            spare[1].close()

    def _prepare(self, key: _Key) -> None:
        guest = None
        with contextlib.suppress(SandboxError, OSError):  # the next start says what is wrong
            guest = self._start(key.spec)
        with self._lock:
            self._is_starting = False
            if guest is not None:
                self._spare = key, guest
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = threading.Timer(IDLE_SECONDS, self.discard)
        self._expiry.daemon = True
        self._expiry.start()
