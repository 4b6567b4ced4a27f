"""The time: the clocks of the guests, and the ticks at which they stop to be checked."""

import threading
import time

import wasmtime
from wasmtime import component

TICK = 0.004
CLOCK_RESOLUTION = 100_000
"""Resolution of the clocks inside, in nanoseconds."""


def coarse(nanoseconds: int) -> int:
    """A time as the clocks inside show it."""
    return nanoseconds // CLOCK_RESOLUTION * CLOCK_RESOLUTION


def monotonic_now(_store: object) -> int:
    return coarse(time.monotonic_ns())


def wall_now(_store: object) -> component.Record:
    return _record(*divmod(coarse(time.time_ns()), 1_000_000_000))


def monotonic_resolution(_store: object) -> int:
    return CLOCK_RESOLUTION


def wall_resolution(_store: object) -> component.Record:
    return _record(0, CLOCK_RESOLUTION)


def _record(seconds: int, nanoseconds: int) -> component.Record:
    record = component.Record()
    record.seconds, record.nanoseconds = seconds, nanoseconds  # type: ignore[attr-defined]
    return record


class Ticker:
    """Advances the epoch every `TICK` seconds while a guest runs, so that the guest can be left, and checked."""

    def __init__(self, engine: wasmtime.Engine) -> None:
        self._engine = engine
        self._active = 0
        self._asleep = False
        self._lock = threading.Lock()
        self._wake = threading.Event()
        threading.Thread(target=self._run, name='habilis-ticker', daemon=True).start()

    def start(self) -> None:
        """A guest starts to run."""
        with self._lock:
            self._active += 1
            if self._asleep:
                self._asleep = False
                self._wake.set()

    def stop(self) -> None:
        """A guest has stopped."""
        with self._lock:
            self._active -= 1

    def _run(self) -> None:
        while True:
            time.sleep(TICK)
            self._engine.increment_epoch()
            with self._lock:
                self._asleep = self._active == 0
                self._wake.clear()
            if self._asleep:
                self._wake.wait()
