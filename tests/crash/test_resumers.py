"""Two processes go on with the same run: one does, the other is told."""

from pathlib import Path

import pytest

from tests.crash.killing import Case, Ended, House
from tests.crash.stores import STORES

DAY = 86_400.0


def _left_at(house: House, what: str, *, clock: float = 0.0) -> Case:
    """A run whose process was killed after this write."""
    at = house.expected.writes.index(what) + 1
    case = house.case()
    assert case.attempt(trouble='dies after', at=at, clock=clock).killed
    return case


def _both(case: Case, folder: Path, clocks: tuple[float, float] = (0.0, 0.0)) -> tuple[Ended, str]:
    """Two at once. How the one ended who won, and what the other one was told, with `PID` for the number of the first.

    Both have seen that nobody has the run before either claims it.
    """
    folder.mkdir()
    pids = [case.start(together=str(folder), clock=clock) for clock in clocks]
    ended = {pid: case.wait(pid) for pid in pids}
    case.look()
    won, lost = sorted(pids, key=lambda pid: bool(ended[pid].error))
    return ended[won], ended[lost].error.replace(f'process {won} on', 'process PID on')


def _is_busy(case: Case, told: str) -> bool:
    return told.startswith(f'RunBusy: {case.run} is being executed by process PID on ')


@pytest.mark.parametrize('house', STORES, indirect=True)
def test_one_of_two_continues_and_the_other_learns_that_the_run_is_busy(house: House, tmp_path: Path) -> None:
    for number, write in enumerate(('opened shop#1', 'done shop#1/~2/pay#1', 'done shop#1/~1/buyer#1')):
        case = _left_at(house, write)
        won, told = _both(case, tmp_path / str(number))
        case.check(won, house.expected)
        assert _is_busy(case, told)


@pytest.mark.parametrize('house', STORES, indirect=True)
@pytest.mark.parametrize('days', [-1, 1])
def test_a_clock_that_jumps_before_a_run_is_resumed_changes_nothing(house: House, days: int, tmp_path: Path) -> None:
    case = _left_at(house, 'done shop#1/fetch#2', clock=days * DAY)
    won, told = _both(case, tmp_path / 'both')
    case.check(won, house.expected)
    assert _is_busy(case, told)


@pytest.mark.parametrize('house', STORES, indirect=True)
@pytest.mark.parametrize('days', [-1, 1])
def test_of_two_whose_clocks_differ_one_continues(house: House, days: int, tmp_path: Path) -> None:
    case = _left_at(house, 'done shop#1/fetch#2')
    won, told = _both(case, tmp_path / 'both', (0.0, days * DAY))
    case.check(won, house.expected)
    assert _is_busy(case, told)


@pytest.mark.parametrize('house', STORES, indirect=True)
def test_one_whose_clock_jumps_while_it_works_continues(house: House) -> None:
    case = _left_at(house, 'done shop#1/fetch#2', clock=DAY)
    ended = case.attempt(clock=-DAY, trouble='dies before', at=20)
    assert ended.killed
    case.finish(house.expected)
