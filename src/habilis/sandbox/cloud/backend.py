"""What the backends of clouds share. Each adds a `CloudMachine` on its SDK."""

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from typing import ClassVar

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.sandbox.cloud.guest import CloudGuest, CloudMachine
from habilis.sandbox.contract import Guest, GuestSpec

LIFETIME = 600
"""Seconds after which the cloud ends a machine whose process here has died."""

RENEW_SECONDS = 120.0


class CloudBackend(ABC):
    """Guests in machines of a cloud: one machine per guest, without network, removed with its guest."""

    has_processes = True
    runs_between_requests = False  # files come back with an answer only
    copies_files = True
    cloud: ClassVar[str]
    """Its name, in messages."""

    variable: ClassVar[str]
    """What to set in the environment; its SDK reads the key from there."""

    def __init__(self, image: str, key: str | None) -> None:
        if not key and not self._has_key():
            msg = f'{self.cloud} needs a key: set {self.variable}, or pass key=…'
            raise BackendNotFound(msg)
        self._image = image
        self._key = key
        self._guests: weakref.WeakSet[CloudGuest] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._renewer: threading.Thread | None = None

    def _has_key(self) -> bool:
        """Whether the SDK finds a key by itself."""
        return bool(os.environ.get(self.variable))

    @property
    def isolation(self) -> str:
        """How the code is isolated."""
        image = f' of {self._image}' if self._image else ''
        return f'a machine{image} at {self.cloud}, without network, as user nobody'

    def start(self, spec: GuestSpec) -> Guest:
        """Start a machine, and the guest in it."""
        with self._explained():
            machine = self._create(spec)
        guest = CloudGuest(machine, spec, self.cloud)
        with self._explained():
            guest.start()
        with self._lock:
            self._guests.add(guest)
            if self._renewer is None:
                self._renewer = threading.Thread(target=self._renew, name=f'habilis-{self.cloud}', daemon=True)
                self._renewer.start()
        return guest

    @abstractmethod
    def _create(self, spec: GuestSpec) -> CloudMachine:
        """Start a machine that ends `LIFETIME` seconds after its last renewal."""

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Raise the errors of the SDK, which have no common class, as `SandboxError`."""
        try:
            yield
        except SandboxError:
            raise
        except Exception as error:
            msg = f'{self.cloud} refused: {str(error).strip().partition(chr(10))[0][:300] or type(error).__name__}'
            raise SandboxError(msg) from error

    def _renew(self) -> None:
        pause = threading.Event()
        while not pause.wait(RENEW_SECONDS):
            with self._lock:
                guests = list(self._guests)
            for guest in guests:
                guest.renew()
