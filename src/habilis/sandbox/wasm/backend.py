"""The `wasm` backend: what the entry point names."""

import threading

from habilis.sandbox.contract import Guest, GuestSpec
from habilis.sandbox.wasm.cache import compiled_component
from habilis.sandbox.wasm.engine import Engine
from habilis.sandbox.wasm.warm_guests import WarmGuests


class WasmBackend:
    """CPython in WebAssembly. Nothing to install, a new sandbox in a few milliseconds."""

    isolation = 'CPython compiled to WebAssembly, run by wasmtime: own memory, no system calls but those granted'

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._spares: WarmGuests | None = None

    def start(self, spec: GuestSpec) -> Guest:
        """A new instance; the first one of a process loads (and on a new machine builds) the component."""
        engine, spares = self._load()
        if spec.mounts:  # these are part of an instance from its start
            return engine.start(spec)
        spare = spares.take()
        if spare is None:
            return engine.start(spec)
        spare.adopt(spec.limits)
        return spare

    def _load(self) -> tuple[Engine, WarmGuests]:
        if self._engine is None or self._spares is None:
            with self._lock:
                if self._engine is None or self._spares is None:
                    engine = Engine.load(compiled_component())
                    self._spares = WarmGuests(lambda: engine.start(GuestSpec()))
                    self._engine = engine
        return self._engine, self._spares
