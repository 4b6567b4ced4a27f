"""Runs the component with wasmtime, through its C interface.

wasmtime's Python classes look up the type of a function at every call. The interface here is one function each way,
text to text, so this module calls the C functions directly: 19 µs a call instead of 47, 11 µs a host call instead of
80.

A guest computes on a stack of its own, which can be left at every tick and at every message, and entered again on
another thread. So a short request needs no thread but the caller's: it is begun there (`WasmGuest.begin`), and goes on
on a worker only if it takes longer, or waits. Tools are called when that stack was left: they get the stack of a
thread, as they expect.
"""

import ctypes
import importlib
import sys
import threading
import time
from collections.abc import Callable
from ctypes import addressof, byref
from pathlib import Path
from typing import Any, ClassVar, cast

import wasmtime
from wasmtime import component

from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.contract import GuestDied, GuestSpec, HostSide, Interrupted, Stream
from habilis.sandbox.guest.bridge import PIECE
from habilis.sandbox.host.guest_messages import is_quick
from habilis.sandbox.wasm import clocks

# The bindings are generated, untyped and pinned with the wasmtime version.
ffi = importlib.import_module('wasmtime._bindings')

WASM_STACK = 64 << 20
"""Large, so that Python raises `RecursionError` before the stack overflows. Only the used part takes memory."""

BRIEF = 2
"""Ticks after which `WasmGuest.begin` returns."""

PATIENT = 3
"""Ticks between two checks of a guest that computes."""

MAX_MESSAGE = 256 << 20

_STRING = ctypes.c_uint8(ffi.WASMTIME_COMPONENT_STRING.value if hasattr(ffi, 'WASMTIME_COMPONENT_STRING') else 12).value
_as_bytes = ctypes.POINTER(ctypes.c_uint8)
_TEXT_OFFSET = ffi.wasmtime_component_val_t.of.offset
NO_FINALIZER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(0)
_ADDRESS, _SIZE = ctypes.c_void_p, ctypes.c_size_t


def _by_address(name: str, result: Any, *parameters: Any) -> Any:
    """A function of wasmtime that takes addresses: they are converted faster than pointers with types."""
    function = ffi.dll[name]
    function.restype, function.argtypes = result, parameters
    return function


_bytes_new = ffi._wasm_byte_vec_new
_bytes_delete = _by_address('wasm_byte_vec_delete', None, _ADDRESS)
_call = _by_address(
    'wasmtime_component_func_call_async', _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _SIZE, _ADDRESS, _SIZE, _ADDRESS
)
_instantiate = _by_address(
    'wasmtime_component_linker_instantiate_async', _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS
)
_poll = _by_address('wasmtime_call_future_poll', ctypes.c_bool, _ADDRESS)
_drop = _by_address('wasmtime_call_future_delete', None, _ADDRESS)
_set_deadline = _by_address('wasmtime_context_set_epoch_deadline', None, _ADDRESS, ctypes.c_uint64)
_libc = ctypes.CDLL('msvcrt' if sys.platform == 'win32' else None)
_is_answered = ctypes.cast(_libc.atoi, ffi.wasmtime_func_async_continuation_callback_t)
"""`atoi` of the C library, which wasmtime calls with the address of `WasmGuest._flag`: the text `1` says that the reply
is there. A function in Python would have to wait for the GIL, twice for each message."""


class _Running(threading.local):
    """The guest that runs on this thread."""

    guest: Any = None
    started: float = 0.0
    used: float = 0.0


_running = _Running()


def _no_error() -> Any:
    return cast('Any', ctypes.POINTER(ffi.wasmtime_error_t))()


def _address(pointer: Any) -> int:
    return addressof(pointer.contents)


def context_of(store: Any) -> Any:
    """The context of a store, which the bindings keep to themselves."""
    return store._context()


class _Argument(ctypes.Structure):
    """The text in a value, as `wasm_byte_vec_t`, but with a pointer that is set to the bytes of Python."""

    _fields_: ClassVar = [('size', ctypes.c_size_t), ('data', ctypes.c_char_p)]


class _Answer(ctypes.Structure):
    """The same with a pointer that is read as a number: text may contain a zero byte."""

    _fields_: ClassVar = [('size', ctypes.c_size_t), ('data', ctypes.c_void_p)]


def configuration() -> wasmtime.Config:
    """The compiler configuration. `CONFIGURATION` is part of the cache key."""
    config = wasmtime.Config()
    config.wasm_component_model = True
    config.epoch_interruption = True
    ffi.wasmtime_config_async_stack_size_set(config.ptr(), WASM_STACK + (1 << 20))
    config.max_wasm_stack = WASM_STACK
    ffi.wasmtime_config_concurrency_support_set(config.ptr(), False)  # of components: each has one task
    return config


CONFIGURATION = f'epochs, {WASM_STACK} bytes of stack, no concurrency'


def compile_component(data: bytes) -> bytes:
    """Compile a component to machine code, for `WasmEngine.load`. Takes seconds."""
    return bytes(component.Component(wasmtime.Engine(configuration()), data).serialize())


class WasmEngine:
    """The compiled component and its linker. One per process."""

    def __init__(self, engine: wasmtime.Engine, code: component.Component) -> None:
        self.engine = engine
        self.component = code
        self.linker = component.Linker(self.engine)
        self.linker.allow_shadowing = True
        self.linker.add_wasip2()
        self._link()
        enter = self.component.get_export_index('enter')
        assert enter is not None
        self.enter_index = enter
        self.ticker = clocks.Ticker(self.engine)

    @classmethod
    def load(cls, compiled: Path) -> 'WasmEngine':
        """Load machine code of `compile_component`."""
        engine = wasmtime.Engine(configuration())
        return cls(engine, component.Component.deserialize_file(engine, str(compiled)))

    @classmethod
    def compile(cls, data: bytes) -> 'WasmEngine':
        """Compile a component without optimization, to run it a few times."""
        config = configuration()
        config.cranelift_opt_level = 'none'
        engine = wasmtime.Engine(config)
        return cls(engine, component.Component(engine, data))

    def _link(self) -> None:
        name = b'host'
        clock = next(name for name in self.component.type.imports(self.engine) if 'clocks/monotonic-clock' in name)
        wall = next(name for name in self.component.type.imports(self.engine) if 'clocks/wall-clock' in name)
        with self.linker.root() as root:
            buffer = ctypes.create_string_buffer(name)
            ffi.wasmtime_component_linker_instance_add_func_async(
                root.ptr(), buffer, len(name), _on_message, None, NO_FINALIZER
            )
            with root.add_instance(clock) as instance:
                instance.add_func('now', clocks.monotonic_now)
                instance.add_func('resolution', clocks.monotonic_resolution)
                instance.add_func('subscribe-instant', _no_native_sleep)
                instance.add_func('subscribe-duration', _no_native_sleep)
            with root.add_instance(wall) as instance:
                instance.add_func('now', clocks.wall_now)
                instance.add_func('resolution', clocks.wall_resolution)

    def start(self, spec: GuestSpec) -> 'WasmGuest':
        """A new instance of the component."""
        return WasmGuest(self, spec)


class WasmGuest:
    """One instance of the component, with its own memory and files."""

    def __init__(self, engine: WasmEngine, spec: GuestSpec) -> None:
        self._engine = engine
        self._interrupted = False
        self._dead = False
        self._pieces: list[str] = []  # of a long answer
        self._outputs: dict[str, HostSide | None] = {'host': None}
        self._store = wasmtime.Store(engine.engine)
        self._set_limits(spec.limits)
        self._store.set_wasi(self._wasi(spec))
        context = context_of(self._store)
        ffi.wasmtime_context_epoch_deadline_async_yield_and_update(context, PATIENT)
        self._context = _address(context)
        self._error = _no_error()
        self._function = self._instantiate()._func
        self._parameter, self._result = ffi.wasmtime_component_val_t(), ffi.wasmtime_component_val_t()
        self._parameter.kind = _STRING
        self._argument = _Argument.from_buffer(self._parameter, _TEXT_OFFSET)
        self._answer = _Answer.from_buffer(self._result, _TEXT_OFFSET)
        parameter, result, error = map(addressof, (self._parameter, self._result, self._error))
        self._places = self._context, parameter, 1, result, 1, error
        self._future: int | None = None
        """The running request."""

        self._flag = ctypes.create_string_buffer(b'1')
        self._continuation = ffi.wasmtime_async_continuation_t(_is_answered, addressof(self._flag))
        self._message: str | None = None
        """What the guest waits for an answer to, and where that goes: `_reply`."""

        self._reply: Any = None
        self._failure: BaseException | None = None

    def _instantiate(self) -> Any:
        """Create the instance, and return its function."""
        engine, raw = self._engine, ffi.wasmtime_component_instance_t()
        linker, code = _address(engine.linker.ptr()), _address(engine.component.ptr())
        future = _instantiate(linker, self._context, code, addressof(raw), addressof(self._error))
        while not _poll(future):
            pass
        _drop(future)
        if self._error:
            raise cast('Any', wasmtime.WasmtimeError)._from_ptr(self._error)
        return cast('Any', component.Instance)._from_raw(raw).get_func(self._store, engine.enter_index)

    def assign(self, spec: GuestSpec) -> None:
        """Give a guest that was started ahead its limits and mounts. It must not have used a file yet."""
        self._set_limits(spec.limits)
        if spec.mounts:
            self._store.set_wasi(self._wasi(spec))

    def _set_limits(self, limits: Limits) -> None:
        self._share = limits.cpu
        self._store.set_limits(memory_size=limits.memory_mb << 20)

    def _wasi(self, spec: GuestSpec) -> wasmtime.WasiConfig:
        wasi = wasmtime.WasiConfig()
        wasi.stdout_custom = self._writer('stdout')
        wasi.stderr_custom = self._writer('stderr')
        for mount in spec.mounts:
            try:
                wasi.preopen_dir(str(mount.source), mount.target, mount.writable)
            except wasmtime.WasmtimeError as error:
                msg = f'the folder {str(mount.source)!r} can no longer be opened; was it removed, or its mode changed?'
                raise SandboxError(msg) from error
        return wasi

    def _writer(self, stream: Stream) -> Callable[[bytes], None]:
        outputs = self._outputs  # not self: the callback must not keep the guest alive

        def write(data: bytes) -> None:
            host = outputs['host']
            if host is not None:
                host.write(stream, data)

        return write

    def enter(self, message: str, host: HostSide) -> str:
        """Send a request to the kernel and return its answer."""
        self._send(message, PATIENT)
        return self.go_on(host)

    def begin(self, message: str, host: HostSide) -> str | None:
        """The same, but return soon: None if the request goes on with `go_on`, on any thread."""
        self._send(message, BRIEF)
        return self._advance(host, brief=True)

    def go_on(self, host: HostSide) -> str:
        """Go on with a request that was begun, and return its answer."""
        answer = self._advance(host, brief=False)
        assert answer is not None
        return answer

    def _send(self, message: str, ticks: int) -> None:
        if self._dead:
            raise GuestDied('broken', 'the interpreter has ended')
        if self._future is not None:  # two threads in one store would end the process
            msg = 'a guest does one request at a time'
            raise RuntimeError(msg)
        self._interrupted = False  # it was meant for an earlier request; `host` has those for this one
        self._message = self._failure = None
        data = message.encode('utf-8')
        self._argument.size, self._argument.data = len(data), data  # borrowed, until the request ends
        _set_deadline(self._context, ticks)
        self._future = _call(addressof(self._function), *self._places)

    def _advance(self, host: HostSide, *, brief: bool) -> str | None:
        """Let the guest compute, and answer its messages. If `brief`, return None where this takes time."""
        _running.guest, self._outputs['host'] = self, host
        if self._share < 1:
            _running.started, _running.used = time.perf_counter(), time.thread_time()
        ticker = self._engine.ticker
        ticker.start()
        try:
            while not _poll(self._future):
                if self._failure is not None:
                    raise self._failure
                if brief:
                    return None
                if self._message is None:
                    self._check(host)
                else:
                    self._answer_with(host)
            return self._end()
        except BaseException as error:
            self._stop()
            if isinstance(error, Interrupted):
                raise GuestDied('cancelled', 'interrupted') from None
            raise
        finally:
            ticker.stop()
            _running.guest = self._outputs['host'] = None

    def hear(self, message: Any, reply: Any, continuation: Any) -> None:
        """The guest has sent a message, and waits. Called on its stack, where only what is quick is answered."""
        self._flag[0] = b'0'
        ctypes.memmove(continuation, byref(self._continuation), ctypes.sizeof(self._continuation))
        try:
            if message.size > MAX_MESSAGE:
                raise GuestDied('broken', f'a message of {message.size:,} bytes')
            text, self._reply = ctypes.string_at(message.data, message.size).decode('utf-8', 'replace'), reply
            if text[:1] == 'a':
                self._add_piece(text[1:])
                self._put('')
                return
            self._message = text
            host = self._outputs['host']
            if host is not None and is_quick(text):
                self._answer_with(host)
        except BaseException as error:
            self._failure = error

    def fail(self, error: BaseException) -> None:
        """Say why the guest ends, before it does."""
        self._failure = error

    def _answer_with(self, host: HostSide) -> None:
        if self._interrupted:
            raise Interrupted
        message, self._message = self._message, None
        assert message is not None
        self._put(host.answer(message))

    def _put(self, text: str) -> None:
        """Reply to the guest, when it is entered again."""
        reply = text.encode('utf-8')
        self._reply.kind = _STRING
        _bytes_new(byref(self._reply.of.string), len(reply), ctypes.cast(ctypes.c_char_p(reply), _as_bytes))
        self._flag[0] = b'1'

    def _end(self) -> str:
        """The answer to the request, which has ended."""
        answer, error = self._answer, self._error
        self._forget()
        if error:
            cause = _cause(error)
            raise self._failure or cause
        size = answer.size
        if size > MAX_MESSAGE:
            raise GuestDied('broken', f'the sandbox answered with {size:,} bytes')
        text = ctypes.string_at(answer.data, size).decode('utf-8', 'replace')
        _bytes_delete(addressof(answer))
        pieces, self._pieces = self._pieces, []
        return ''.join((*pieces, text)) if pieces else text

    def _add_piece(self, piece: str) -> None:
        """Keep a piece of a long answer, whose rest follows."""
        self._pieces.append(piece)
        if len(piece) != PIECE or len(self._pieces) > MAX_MESSAGE // PIECE:
            raise GuestDied('broken', f'the sandbox answered with {len(self._pieces):,} pieces')

    def _forget(self) -> None:
        _drop(self._future)
        self._future = self._argument.data = self._reply = None

    def _stop(self) -> None:
        """End the running request, which ends the interpreter."""
        self._dead = True
        if self._future is not None:
            self._forget()

    def interrupt(self) -> None:
        """End the guest at its next tick or message."""
        self._interrupted = True

    def _check(self, host: HostSide) -> None:
        """At every tick: end if interrupted, sleep if the CPU share is used up."""
        if self._interrupted:
            raise Interrupted
        host.check()
        if self._share < 1:
            used, passed = time.thread_time() - _running.used, time.perf_counter() - _running.started
            time.sleep(min(max(0.0, used / self._share - passed), 1.0))

    def close(self) -> None:
        """Free the instance's memory."""
        self._stop()
        self._store.close()


def _cause(pointer: object) -> GuestDied:
    error = cast('Any', wasmtime.WasmtimeError)._from_ptr(pointer)
    if isinstance(error, wasmtime.ExitTrap):
        return GuestDied('exit', f'the code ended the interpreter with exit code {error.code}')
    text = str(error)
    if 'call stack exhausted' in text:
        return GuestDied('stack', 'the call stack is exhausted')
    reason = text.rsplit('Caused by:', 1)[-1].strip().splitlines()[-1:] or ['unknown']
    return GuestDied('broken', f'the interpreter crashed: {reason[0].strip()}')


@ffi.wasmtime_component_func_async_callback_t  # type: ignore[misc]
def _on_message(
    _data: object,
    _context: object,
    _type: object,
    args: Any,
    _nargs: object,
    results: Any,
    _nresults: object,
    _error: object,
    continuation: Any,
) -> None:
    _running.guest.hear(args[0].of.string, results[0], continuation)


def _no_native_sleep(_store: object, _length: int) -> None:
    """Refuse native sleep, which could not be interrupted. The kernel sleeps on the host."""
    msg = 'native sleep is not available in the sandbox; use time.sleep or asyncio.sleep'
    _running.guest.fail(GuestDied('broken', msg))
    raise wasmtime.WasmtimeError(msg)
