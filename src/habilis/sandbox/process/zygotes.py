"""Zygotes: guests that have imported the packages of an environment, run no code, and are forked for new sandboxes.

Whoever asks twice for the same packages will often ask again: the restarts of a sandbox, the runs of an agent, the
calls of a library tool. So the second request starts a zygote in the background. It has no workspace. Two requests with
different packages start one for all packages. From then on, two requests for the same sandbox, without folders of the
user, have the next one made ahead (the spare).
"""

import contextlib
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.contract import GuestDied, GuestSpec, Mount
from habilis.sandbox.host.workers import Interruptible, stop_at_exit
from habilis.sandbox.options import PACKAGES
from habilis.sandbox.process.confinement import Confinement
from habilis.sandbox.process.guest import ProcessGuest, Stem

logger = logging.getLogger('habilis.sandbox')
IDLE_SECONDS = 60.0
"""A zygote that nobody uses is closed after this time."""

MAX_ZYGOTES = 4
MAX_FAILURES = 3


@dataclass(frozen=True)
class Environment:
    """What the sandboxes of a zygote have in common. The packages are identified by their inode, too."""

    targets: frozenset[str]
    """Where their folders will be mounted."""

    packages: tuple[Mount, ...] = ()
    inodes: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, spec: GuestSpec) -> 'Environment | None':
        """The environment of a sandbox. None for one that no zygote can make: its network belongs to it from the start,
        or the place of a mount depends on what is in another one."""
        paths = [PurePosixPath(mount.target) for mount in spec.mounts]
        if spec.network is not None or any(a in b.parents for a in paths for b in paths):
            return None
        packages = tuple(mount for mount in spec.mounts if mount.target == PACKAGES)
        infos = [os.stat(mount.source) for mount in packages]
        targets = frozenset(mount.target for mount in spec.mounts if mount.target != PACKAGES)
        return cls(targets, packages, tuple((info.st_dev, info.st_ino) for info in infos))

    @property
    def without_packages(self) -> 'Environment':
        """The environment for any packages: they are mounted, and not imported."""
        return Environment(self.targets | {mount.target for mount in self.packages})


Wanted = tuple[Environment, Limits]
"""All that guests without folders of the user differ in."""


@dataclass
class _Zygote:
    guest: ProcessGuest
    stem: Stem
    expiry: threading.Timer | None = None
    last: Wanted | None = None
    """What was asked for last."""

    spare: ProcessGuest | None = None
    spare_for: Wanted | None = None
    """What the spare is made for, or is being made for."""

    def take_spare(self, wanted: Wanted) -> ProcessGuest | None:
        """The guest that was made ahead, if it is what is wanted, and has not been killed."""
        if self.spare is None or self.spare_for != wanted:
            return None
        taken, self.spare, self.spare_for = self.spare, None, None
        if taken.has_ended:
            taken.close()
            return None
        return taken


class Zygotes(Interruptible):
    """The zygotes of a backend. `start` starts one; `confine` says how a sandbox that is forked from it is confined."""

    def __init__(
        self, start: Callable[[GuestSpec, Environment], ProcessGuest], confine: Callable[[GuestSpec], Confinement]
    ) -> None:
        self._start = start
        self._confine = confine
        self._lock = threading.Lock()
        self._last: Environment | None = None
        self._starting: set[Environment] = set()
        self._failures: Counter[Environment] = Counter()
        self._zygotes: dict[Environment, _Zygote] = {}
        stop_at_exit(self)

    def fork(self, spec: GuestSpec) -> ProcessGuest | None:
        """A new guest from a zygote, if there is one that fits. Starts one if this was asked for before."""
        try:
            environment = Environment.of(spec)
        except OSError:  # the start will say it better
            return None
        if environment is None:
            return None
        with self._lock:
            last, self._last = self._last, environment
            general = environment.without_packages
            if environment == last:
                self._start_soon(spec, environment)
            elif last is not None and last.without_packages == general:
                self._start_soon(spec, general)
            found = environment if environment in self._zygotes else general
            zygote = self._zygotes.get(found)
            if zygote is None:
                return None
            zygote.stem.hold()
            wanted = environment, spec.limits
            spare = zygote.take_spare(wanted)
        try:
            made = spare or self._fork(zygote, found, spec)
            self._expire_later(found, zygote)
            if not environment.targets:
                self._make_spare_soon(zygote, found, spec, wanted)
            return made
        except (SandboxError, GuestDied, OSError) as error:  # a start without it works, or says what is wrong
            logger.info('the sandbox is started without a zygote: %s', error)
            self._failures[found] += 1
            self.discard(found)
            return None
        finally:
            zygote.stem.release()

    def _fork(self, zygote: _Zygote, found: Environment, spec: GuestSpec) -> ProcessGuest:
        mounts = [mount for mount in spec.mounts if mount not in found.packages]
        mounts.sort(key=lambda mount: mount.target.count('/'))
        return zygote.guest.fork_new(spec.limits, mounts, self._confine(spec), zygote.stem)

    def _make_spare_soon(self, zygote: _Zygote, found: Environment, spec: GuestSpec, wanted: Wanted) -> None:
        """Make the next guest in the background, if the same was asked for twice in a row."""
        with self._lock:
            last, zygote.last = zygote.last, wanted
            is_discarded = self._zygotes.get(found) is not zygote
            if is_discarded or last != wanted or zygote.spare_for == wanted:
                return
            old, zygote.spare, zygote.spare_for = zygote.spare, None, wanted
            zygote.stem.hold()

        def make() -> None:
            if old is not None:
                old.close()
            made = None
            with contextlib.suppress(SandboxError, GuestDied, OSError):  # the next start says what is wrong
                made = self._fork(zygote, found, spec)
            with self._lock:
                if zygote.spare_for == wanted:
                    zygote.spare, made = made, None
                    zygote.spare_for = wanted if zygote.spare else None
            if made is not None:
                made.close()
            zygote.stem.release()

        _in_background(make)

    def _start_soon(self, spec: GuestSpec, environment: Environment) -> None:
        """Start a zygote in the background, unless there is one, or it has been of no use."""
        is_known = environment in self._zygotes or environment in self._starting
        if not is_known and self._failures[environment] < MAX_FAILURES:
            self._starting.add(environment)
            _in_background(lambda: self._prepare(spec, environment))

    def interrupt(self) -> None:
        """Close all, at exit."""
        for environment in list(self._zygotes):
            self.discard(environment)

    def discard(self, environment: Environment) -> None:
        """Use this zygote no longer. It ends with the last of its sandboxes."""
        with self._lock:
            zygote = self._zygotes.pop(environment, None)
            if zygote is None:
                return
            spare, zygote.spare, zygote.spare_for = zygote.spare, None, None
        if zygote.expiry is not None:
            zygote.expiry.cancel()
        if spare is not None:
            spare.close()
        zygote.stem.release()

    def _prepare(self, spec: GuestSpec, environment: Environment) -> None:
        guest = None
        with contextlib.suppress(SandboxError, OSError):  # the next start says what is wrong
            guest = self._start(spec, environment)
        oldest = None
        with self._lock:
            if guest is not None:
                self._starting.discard(environment)
                self._zygotes[environment] = zygote = _Zygote(guest, guest.become_stem().hold())
                self._expire_later(environment, zygote)
                if len(self._zygotes) > MAX_ZYGOTES:
                    oldest = next(iter(self._zygotes))
        if oldest is not None:
            self.discard(oldest)

    def _expire_later(self, environment: Environment, zygote: _Zygote) -> None:
        if zygote.expiry is not None:
            zygote.expiry.cancel()
        zygote.expiry = threading.Timer(IDLE_SECONDS, self.discard, [environment])
        zygote.expiry.daemon = True
        zygote.expiry.start()


def _in_background(call: Callable[[], None]) -> None:
    threading.Thread(target=call, name='habilis-zygote', daemon=True).start()
