"""The default sandbox, used for real: what a person would try first."""

import statistics
import time
from dataclasses import dataclass

from habilis.core.errors import SandboxError
from habilis.sandbox.contract import Cell
from habilis.sandbox.sync import SyncSandbox

LOOP_SECONDS = 0.2
CREATIONS = 7
PAUSE = 0.02
"""Seconds between creations, in which the next interpreter is started ahead."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How long things took, in milliseconds."""

    first_ms: float
    """The first sandbox of the process: it loads the component, and makes it where there is none."""

    create_ms: float
    cell_ms: float
    loop_ms: float


def run() -> Outcome:
    """Start a sandbox, run a cell, call a tool, stop a loop. Raises `SandboxError` for the first that fails."""
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
            msg = f'an endless loop was not stopped by its time limit, but gave {loop.error or loop.text}'
            raise SandboxError(msg)
        _expect(box.run('x'), 20, 'a cell after a stopped one')
    return Outcome(
        first_ms=1e3 * (loaded - started),
        create_ms=create_ms,
        cell_ms=1e3 * (called - first),
        loop_ms=1e3 * (stopped - called),
    )


def _create_ms() -> float:
    time.sleep(PAUSE)
    started = time.perf_counter()
    box = SyncSandbox.create()
    taken = time.perf_counter() - started
    box.close()
    return 1e3 * taken


def double(number: int) -> int:
    """The tool of the test."""
    return number * 2


def _expect(cell: Cell, value: object, what: str) -> None:
    if cell.error is not None or cell.value != value:
        msg = f'{what} gave {cell.error or cell.text} instead of {value!r}'
        raise SandboxError(msg)
