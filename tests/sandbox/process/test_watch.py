"""The watch: memory of all processes of a guest, also between cells, at little cost."""

import time
from pathlib import Path
from typing import cast

import pytest

from habilis.core.limits import Limits
from habilis.sandbox.host.pipe_guest import PipeGuest
from habilis.sandbox.process import watch
from habilis.sandbox.process.watch import IDLE_SECONDS, LESS, PAUSE, TOO_MUCH, IdleTurns
from habilis.sandbox.session import Sandbox, SyncSandbox

MB = 1 << 20
LATER = """
import subprocess, sys
eat = 'import time; time.sleep(1); x = bytearray(60 << 20); time.sleep(600)'
children = [subprocess.Popen([sys.executable, '-c', eat], start_new_session=True) for _ in range(8)]
"""


WAIT = 'next(n for n in iter(int, 1) if time.sleep(0.05) or os.path.exists("go"));'
WHEN_TOLD = LATER.replace('import time;', 'import os, time;').replace('time.sleep(1);', WAIT)
"""The children wait for a file."""


def wait_for_end_between_cells(sandbox: SyncSandbox) -> None:
    """Wait until the watch has ended the guest."""
    guest = cast('PipeGuest', sandbox.sandbox._interpreter._guest)  # pyright: ignore[reportPrivateUsage]
    end = time.monotonic() + 60
    while guest._reason is None or not has_ended(guest.pid):  # pyright: ignore[reportPrivateUsage]
        assert time.monotonic() < end
        time.sleep(0.02)


def has_ended(pid: int) -> bool:
    """Whether a process is no more, or waits to be reaped. The watch notes the reason before it kills."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] == 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize('checkpoints', [True, False])
def test_children_that_grow_between_cells_are_ended_and_the_next_cell_says_so(
    checkpoints: bool, tmp_path: Path
) -> None:
    limits = Limits(memory_mb=96)
    with Sandbox.create_sync('process', limits=limits, checkpoints=checkpoints, workspace=tmp_path) as sandbox:
        assert sandbox.run("keep = 'kept'").ok
        assert sandbox.run(WHEN_TOLD).ok
        assert sandbox.run('1').ok  # so the variables of the cell before are saved
        (tmp_path / 'go').touch()
        wait_for_end_between_cells(sandbox)
        cell = sandbox.run("open('/tmp/ran', 'w')")
        assert cell.error is not None
        assert (cell.error.kind, cell.error.type) == ('memory', 'MemoryError')
        assert f'between two cells: {TOO_MUCH}' in cell.error.message
        assert sandbox.run("import os\nos.path.exists('/tmp/ran')").value is False
        if checkpoints:
            assert sandbox.run('keep').value == 'kept'


def test_children_that_stay_small_run_on_between_cells() -> None:
    with Sandbox.create_sync('process', limits=Limits(memory_mb=96)) as sandbox:
        assert sandbox.run("import subprocess\nchild = subprocess.Popen(['cat'], stdin=-1, stdout=-1)").ok
        time.sleep(1)
        assert sandbox.run("child.communicate(b'there')[0]").value == b'there'


def test_a_variable_that_is_saved_after_its_cell_is_not_in_the_way_of_the_reason() -> None:
    with Sandbox.create_sync('process', limits=Limits(memory_mb=200)) as sandbox:
        assert sandbox.run("keep = 'kept'").ok
        cell = sandbox.run(f'large = bytes(range(256)) * (8 << 12)\n{LATER}')  # too large to be sent with the answer
        assert cell.ok
        wait_for_end_between_cells(sandbox)
        error = sandbox.run('1').error
        assert error is not None
        assert error.kind == 'memory', error
        assert sandbox.run('keep').value == 'kept'


def test_guests_between_cells_are_looked_at_when_the_machine_has_less_memory_and_rarely_otherwise() -> None:
    turns = IdleTurns()
    assert turns.is_due(0.0, 1000 * MB)
    turns.end(0.0, 0.1)
    assert not turns.is_due(0.2, 0)  # it has taken a while, and must not take all the time
    assert turns.is_due(0.1 + PAUSE * 0.1, 0)
    turns.end(2.0, 2.0)
    assert not turns.is_due(3.0, 0)
    assert not turns.is_due(4.0, 1000 * MB)
    assert not turns.is_due(4.2, 1000 * MB - LESS)
    assert turns.is_due(4.4, 1000 * MB - LESS - 1)  # less than the most since the last time
    turns.end(4.4, 4.4)
    assert not turns.is_due(4.4 + IDLE_SECONDS - 0.1, 900 * MB)
    assert turns.is_due(4.4 + IDLE_SECONDS, 900 * MB)


def test_the_memory_of_this_machine_is_known() -> None:
    assert watch._available_memory() > MB  # pyright: ignore[reportPrivateUsage]
