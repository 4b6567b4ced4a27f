"""Runs QuickJS with wasmtime: one instance per use, whose only ways out are the functions in `_IMPORTS`.

The module is the one of the npm package `quickjs-wasi`. It imports twelve functions. Those for files fail, so there are
none; the standard modules of the program `qjs` (`std`, `os`) are not compiled in.
"""

import contextlib
import ctypes
import os
import struct
import threading
import time
from collections.abc import Callable, Mapping
from ctypes import byref
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import wasmtime

from habilis.core.limits import Limits
from habilis.sandbox.contract import GuestDied, Interrupted
from habilis.sandbox.host.workers import Interruptible, require_deep_stack
from habilis.sandbox.wasm.clocks import Ticker, coarse
from habilis.sandbox.wasm.engine import NO_FINALIZER, context_of, ffi

WASM_STACK = 16 << 20
"""Large, so that QuickJS notices deep recursion first, and throws a `RangeError`."""

JAVASCRIPT_STACK = 512 << 10
"""Half of the stack inside the module; the rest is for the code that handles its exhaustion."""

MAX_TEXT = 16 << 20
"""Maximum bytes of a text that is read from the guest."""

CONFIGURATION = f'epochs, {WASM_STACK} bytes of stack'

_MODULE, _FULFILLED, _REJECTED = 1, 1, 2  # constants of the module
_NO_SUCH_FILE, _INVALID = 8, 28  # of WASI
_TICKS = 3
_MAX_NAME, _MAX_RANDOM = 1000, 1000

Value = int
"""A value inside the guest."""


class _RunningScript(threading.local):
    """What runs on this thread."""

    guest: Any = None
    failure: BaseException | None = None


_running = _RunningScript()


class Thrown(Exception):
    """The code threw a value."""

    def __init__(self, value: Value) -> None:
        super().__init__(value)
        self.value = value


def _configuration() -> wasmtime.Config:
    config = wasmtime.Config()
    config.epoch_interruption = True
    config.max_wasm_stack = WASM_STACK
    ffi.wasmtime_config_async_stack_size_set(config.ptr(), WASM_STACK + (1 << 20))
    return config


def compile_module(data: bytes) -> bytes:
    """Compile the module to machine code, for `JavaScriptEngine`. Takes a second."""
    return bytes(wasmtime.Module(wasmtime.Engine(_configuration()), data).serialize())


class JavaScriptEngine:
    """The compiled module. One per process."""

    def __init__(self, compiled: Path) -> None:
        self.engine = wasmtime.Engine(_configuration())
        self.module = wasmtime.Module.deserialize_file(self.engine, str(compiled))
        self.linker = wasmtime.Linker(self.engine)
        for name in self.module.imports:
            assert isinstance(name.type, wasmtime.FuncType)
            self.linker.define_func(name.module, name.name or '', name.type, _IMPORTS[f'{name.module} {name.name}'])
        self.ticker = Ticker(self.engine)


class JavaScriptGuest(Interruptible):
    """One instance, for use in a `with` block on a worker thread. `modules` are those that code may import.

    Raises `GuestDied` if a limit is exceeded, and `Thrown` if the code throws.
    """

    def __init__(self, engine: JavaScriptEngine, limits: Limits, modules: Mapping[str, str]) -> None:
        self._engine, self._limits, self._modules = engine, limits, modules
        self._interrupted = False
        self._functions: dict[str, Any] = {}

    def __enter__(self) -> Self:
        require_deep_stack()
        self._end = time.monotonic() + self._limits.seconds
        self._store = wasmtime.Store(self._engine.engine)
        self._store.set_limits(memory_size=self._limits.memory_mb << 20)
        self._store.set_epoch_deadline(1)
        ffi.wasmtime_store_epoch_deadline_callback(self._store.ptr(), _on_ticks, None, NO_FINALIZER)
        _running.guest, _running.failure = self, None
        self._engine.ticker.start()
        try:
            self._instance = self._engine.linker.instantiate(self._store, self._engine.module)
            self._memory: wasmtime.Memory = cast('Any', wasmtime.Memory)._from_raw(self._export(b'memory').of.memory)
            self._call('_initialize')
            if self._call('qjs_init') != 0:
                raise GuestDied('memory', 'there is not enough memory to start')
            self._call('qjs_set_max_stack_size', JAVASCRIPT_STACK)
            self._call('qjs_set_module_loader', 1)
            self._undefined: Value = self._call('qjs_get_undefined')
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.ticker.stop()
        _running.guest = None
        self._store.close()

    def interrupt(self) -> None:
        """End the code soon. Thread-safe."""
        self._interrupted = True

    def check(self) -> None:
        """While it computes: end if interrupted, or if the time is up."""
        if self._interrupted:
            raise Interrupted
        if time.monotonic() > self._end:
            raise GuestDied('time', f'it took longer than {self._limits.seconds:g} s')

    # Values -----------------------------------------------------------------------------------------------------------

    def evaluate(self, code: str, file: str) -> Value:
        """Run a script, and return its last value."""
        return self._evaluate(code, file, 0)

    def load(self, code: str, file: str) -> Value:
        """Run a module, and return the object that has its exports."""
        promise = self._evaluate(code, file, _MODULE)
        state = self._call('qjs_promise_state', promise)
        if state not in (_FULFILLED, _REJECTED):
            raise GuestDied('exception', f'{file} waits (`await`) for something that never happens')
        value: Value = self._call('qjs_promise_result', promise)
        if state == _REJECTED:
            raise Thrown(value)
        return value

    def get(self, value: Value, name: str) -> Value:
        """A property of an object."""
        return self._checked(self._call('qjs_get_prop_string', value, self._put(name.encode())))

    def apply(self, function: Value, *arguments: Value) -> Value:
        """Call a function."""
        data = self._put(struct.pack(f'<{len(arguments)}I', *arguments))
        return self._checked(self._call('qjs_call', function, self._undefined, len(arguments), data))

    def string(self, text: str) -> Value:
        """A string."""
        data = text.encode('utf-8', 'replace')
        return self._checked(self._call('qjs_new_string', self._put(data), len(data)))

    def text(self, value: Value) -> str:
        """The text of a string. Raises `GuestDied` if it is none, or too long."""
        if not self._call('qjs_is_string', value):
            raise GuestDied('broken', 'the guest answered with something else than text')
        size_at = self._put(bytes(4))
        start: int = self._call('qjs_get_string_len', value, size_at)
        size: int = struct.unpack('<I', self._read(size_at, 4))[0]
        if not start or size > MAX_TEXT:
            raise GuestDied('output', f'it answered with {size:,} bytes; the limit is {MAX_TEXT:,}')
        return self._read(start, size).decode('utf-8', 'replace')

    def is_undefined(self, value: Value) -> bool:
        """Whether a value is `undefined`."""
        return bool(self._call('qjs_is_undefined', value))

    def is_function(self, value: Value) -> bool:
        """Whether a value can be called."""
        return bool(self._call('qjs_is_function', value))

    # Inside -----------------------------------------------------------------------------------------------------------

    def _evaluate(self, code: str, file: str, flags: int) -> Value:
        data = code.encode('utf-8', 'replace')
        return self._checked(self._call('qjs_eval', self._put(data), len(data), self._put(file.encode()), flags))

    def _checked(self, value: Value) -> Value:
        if not value:
            raise GuestDied('memory', 'the memory is exhausted')
        if self._call('qjs_is_exception', value):
            raise Thrown(self._call('qjs_get_exception'))
        return value

    def _call(self, name: str, *arguments: int) -> Any:
        function = self._functions.get(name)
        if function is None:
            function = cast('Any', wasmtime.Func)._from_raw(self._export(name.encode()).of.func)
            self._functions[name] = function
        try:
            return function(self._store, *arguments)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            raise _cause(error) from None

    def _export(self, name: bytes) -> Any:
        found = ffi.wasmtime_extern_t()
        context = context_of(self._store)
        instance = byref(cast('Any', self._instance)._instance)
        if not ffi.wasmtime_instance_export_get(
            context, instance, ctypes.create_string_buffer(name), len(name), byref(found)
        ):
            msg = f'the module has no {name.decode()}: it is not the QuickJS that was expected'
            raise GuestDied('broken', msg)
        return found

    def _put(self, data: bytes) -> int:
        """Copy bytes into the guest, with a zero after them."""
        start: int = self._call('wasm_malloc', len(data) + 1)
        if not start:
            raise GuestDied('memory', 'the memory is exhausted')
        self._memory.write(self._store, data + b'\0', start)
        return start

    def _read(self, start: int, size: int) -> bytes:
        return bytes(self._memory.read(self._store, start, start + size))

    # Called from inside: none of these raises, and none believes a size -----------------------------------------------

    def write_back(self, start: int, data: bytes) -> int:
        """Answer a function of WASI."""
        try:
            self._memory.write(self._store, data, start)
        except IndexError:
            return _INVALID
        return 0

    def resolve(self, start: int) -> int:
        """Name of an imported module; 0 if there is none, with an exception in the guest."""
        name = self._name(start)
        wanted = next((known for known in (name, f'{name}.js', name.removeprefix('./')) if known in self._modules), '')
        if wanted:
            return self._put(wanted.encode())
        text = f'there is no module {name!r}; a tool can import other tools from "library", and nothing else'
        self._call('qjs_throw', self.string(text))
        return 0

    def source(self, start: int, size_at: int) -> int:
        """Source of a module."""
        data = self._modules.get(self._name(start), '').encode()
        self.write_back(size_at, struct.pack('<I', len(data)))
        return self._put(data)

    def _name(self, start: int) -> str:
        return self._read(start, _MAX_NAME).partition(b'\0')[0].decode('utf-8', 'replace')


@ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    cast('Any', ctypes.POINTER(ffi.wasmtime_context_t)),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint8),
)
def _on_ticks(_context: object, _data: object, delta: Any, kind: Any) -> int:
    delta[0], kind[0] = _TICKS, 0
    try:
        _running.guest.check()
    except BaseException as error:  # the guest traps, and `_cause` returns the error
        _running.failure = error
        pointer = ffi.wasmtime_error_new(ctypes.create_string_buffer(b'ended by the host'))
        return ctypes.cast(pointer, ctypes.c_void_p).value or 0
    return 0


def _cause(error: BaseException) -> BaseException:
    failure = _running.failure
    if isinstance(failure, Interrupted):
        return GuestDied('cancelled', 'interrupted')
    if failure is not None:
        return failure
    text = str(error)
    if 'call stack exhausted' in text:
        return GuestDied('stack', 'the call stack is exhausted')
    return GuestDied('broken', f'the engine crashed: {text.strip().splitlines()[-1].strip()}')


def _clock(_clock: int, _precision: int, target: int) -> int:
    return _running.guest.write_back(target, struct.pack('<Q', coarse(time.time_ns())))


def _random(target: int, size: int) -> int:
    return _running.guest.write_back(target, os.urandom(min(size, _MAX_RANDOM)))


def _no_file(*_: int) -> int:
    return _NO_SUCH_FILE


def _zero(*_: int) -> int:
    return 0


def _nothing(*_: int) -> None:
    return None


def _resolve(_base: int, name: int) -> int:
    with contextlib.suppress(GuestDied):  # 0 is an exception in the guest; a limit that was exceeded ends it soon
        return _running.guest.resolve(name)
    return 0


def _source(name: int, size_at: int) -> int:
    with contextlib.suppress(GuestDied):
        return _running.guest.source(name, size_at)
    return 0


_IMPORTS: dict[str, Callable[..., int | None]] = {
    'env host_call': _zero,  # the guest has no functions of the host
    'env host_get_timezone_offset': _zero,  # UTC
    'env host_interrupt': _zero,  # the epoch interrupts
    'env host_module_load': _source,
    'env host_module_normalize': _resolve,
    'env host_promise_rejection': _nothing,
    'wasi_snapshot_preview1 clock_time_get': _clock,
    'wasi_snapshot_preview1 fd_close': _no_file,
    'wasi_snapshot_preview1 fd_fdstat_get': _no_file,
    'wasi_snapshot_preview1 fd_seek': _no_file,
    'wasi_snapshot_preview1 fd_write': _no_file,
    'wasi_snapshot_preview1 random_get': _random,
}
