"""Test the default sandbox: cell, tool call, time limit."""

import statistics
import time
from dataclasses import dataclass

from habilis.core.errors import SandboxError
from habilis.sandbox.contract import Cell
from habilis.sandbox.session import SyncSandbox

LOOP_SECONDS = 0.2
CREATIONS = 7
PAUSE_SECONDS = 0.02
"""Time between two sandboxes, in which the pool starts the next interpreter."""


@dataclass(frozen=True, kw_only=True)
class SelfTestResult:
    """Measured times in milliseconds."""

    first_ms: float
    """The first sandbox of the process, which loads the component or builds it."""

    create_ms: float
    cell_ms: float
    loop_ms: float


def run_self_test() -> SelfTestResult:
    """Create a sandbox, run a cell, call a tool, stop an endless loop. Raises `SandboxError` at the first failure."""
    started = time.perf_counter()
    SyncSandbox.create().close()
    loaded = time.perf_counter()
    create_ms = statistics.median(_create_ms() for _ in range(CREATIONS))
    with SyncSandbox.create(tools=[double]) as box:
        _expect(box.run('x = 20\nx + 1'), 21, 'a cell')
        first = time.perf_counter()
        _expect(box.run('double(x + 1)'), 42, 'a tool call')
        called = time.perf_counter()
        loop = box.run('while True: pass', seconds=LOOP_SECONDS)
        stopped = time.perf_counter()
        if loop.error is None or loop.error.kind != 'time':
            msg = f'the time limit did not stop an endless loop: {loop.error or loop.text}'
            raise SandboxError(msg)
        _expect(box.run('x'), 20, 'a cell after the time limit')
    return SelfTestResult(
        first_ms=1e3 * (loaded - started),
        create_ms=create_ms,
        cell_ms=1e3 * (called - first),
        loop_ms=1e3 * (stopped - called),
    )


def _create_ms() -> float:
    time.sleep(PAUSE_SECONDS)
    started = time.perf_counter()
    box = SyncSandbox.create()
    taken = time.perf_counter() - started
    box.close()
    return 1e3 * taken


def double(number: int) -> int:
    """Tool of the test."""
    return number * 2


def _expect(cell: Cell, value: object, what: str) -> None:
    if cell.error is not None or cell.value != value:
        msg = f'{what} returned {cell.error or cell.text} instead of {value!r}'
        raise SandboxError(msg)
