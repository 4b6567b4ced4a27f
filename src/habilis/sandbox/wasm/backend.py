"""The `wasm` backend."""

import sys
import threading

from habilis.core.errors import SandboxError
from habilis.sandbox.contract import Guest, GuestSpec
from habilis.sandbox.host.warm_guests import SilentHost, WarmGuests
from habilis.sandbox.wasm.cache import compiled_component
from habilis.sandbox.wasm.engine import WasmEngine, WasmGuest

MOST_WARM = 8


class WasmBackend:
    """CPython in WebAssembly. Needs no installation; a new sandbox takes a few milliseconds."""

    isolation = 'CPython compiled to WebAssembly, run by wasmtime: own memory, no system calls but those granted'

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engine: WasmEngine | None = None
        self._warm_guests: WarmGuests[WasmGuest] | None = None

    def start(self, spec: GuestSpec) -> Guest:
        """Start an instance; the first one of a process loads the component, and builds it if necessary."""
        engine, warm_guests = self._load()
        warm = warm_guests.take()
        return engine.start(spec) if warm is None else _assigned(warm, spec)

    def start_here(self, spec: GuestSpec, *, alone: bool) -> Guest | None:
        """An instance that was started ahead, or a new one if nothing else needs this thread."""
        if self._engine is None or not (self._warm_guests or alone):
            return None
        return self.start(spec)

    def _load(self) -> tuple[WasmEngine, WarmGuests[WasmGuest]]:
        if self._engine is None or self._warm_guests is None:
            with self._lock:
                if self._engine is None or self._warm_guests is None:
                    _check_host()
                    engine = WasmEngine.load(compiled_component())
                    self._warm_guests = WarmGuests(lambda: _warm(engine), most=MOST_WARM)
                    self._engine = engine
        return self._engine, self._warm_guests


def _check_host() -> None:
    """CPython 3.14.0 ends the process if it runs on a stack that it does not know, such as that of a guest."""
    if sys.version_info[:3] == (3, 14, 0):
        msg = 'the sandbox "wasm" does not work with CPython 3.14.0; install 3.14.1 or later'
        raise SandboxError(msg)


def _warm(engine: WasmEngine) -> WasmGuest:
    """A guest without mounts. It gets them when it is taken: Python looks for them at the first use of a file, and the
    cells of the kernel use none."""
    guest = engine.start(GuestSpec())
    guest.enter('{"op":"warm"}', SilentHost())
    return guest


def _assigned(warm: WasmGuest, spec: GuestSpec) -> WasmGuest:
    try:
        warm.assign(spec)
    except BaseException:  # a folder that cannot be opened
        warm.close()
        raise
    return warm
