"""The `wasm` backend: what the entry point names."""

import threading

from habilis.sandbox.contract import Guest, GuestSpec
from habilis.sandbox.wasm.cache import compiled_component
from habilis.sandbox.wasm.engine import Engine


class WasmBackend:
    """CPython in WebAssembly. Nothing to install, a new sandbox in a few milliseconds."""

    isolation = 'CPython compiled to WebAssembly, run by wasmtime: own memory, no system calls but those granted'

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def start(self, spec: GuestSpec) -> Guest:
        """A new instance; the first one of a process loads (and on a new machine builds) the component."""
        if self._engine is None:
            with self._lock:
                if self._engine is None:
                    self._engine = Engine(compiled_component())
        return self._engine.start(spec)
