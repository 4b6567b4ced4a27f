"""Leases: who gets one, and whose owner is certainly dead."""

import asyncio
import gc
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core import owners
from habilis.core.errors import LeaseLost, RunBusy, StoreUnavailable
from habilis.core.owners import describe_owner, new_owner, owner_state
from habilis.journal import Journal, Lease, MemoryStore, RunInfo, Store
from habilis.journal.leases.claims import has_live_owner, next_lease
from tests.cases import each_case
from tests.journal.faults import RUN, Faulty, away, new


@pytest.fixture
def faulty() -> Faulty:
    return Faulty(MemoryStore())


HELD = Lease(epoch=3, owner='me', until=130.0)

# Who gets it ----------------------------------------------------------------------------------------------------------


def _claim(held: Lease, *, now: float, owner: str, over: int | None = None, claimed: float = 100.0) -> Lease | None:
    return next_lease(held, now=now, claimed=claimed, owner=owner, seconds=30, over=over)


def test_a_new_run_has_no_owner() -> None:
    assert _claim(Lease(epoch=0), now=5, owner='me', claimed=0) == Lease(epoch=1, owner='me', until=35)


def test_the_owner_keeps_the_epoch_for_longer() -> None:
    assert _claim(HELD, now=120, owner='me') == Lease(epoch=3, owner='me', until=150)


def test_a_late_owner_keeps_it_if_there_is_no_other() -> None:
    assert _claim(HELD, now=1000, owner='me') == Lease(epoch=3, owner='me', until=1030)


def test_others_wait_until_it_ends() -> None:
    assert _claim(HELD, now=129.9, owner='you') is None
    assert _claim(HELD, now=130, owner='you') == Lease(epoch=4, owner='you', until=160)


def test_a_dead_owner_is_not_waited_for() -> None:
    assert _claim(HELD, now=101, owner='you', over=3) == Lease(epoch=4, owner='you', until=131)


def test_somebody_else_than_the_dead_owner_is_waited_for() -> None:
    assert _claim(HELD, now=101, owner='you', over=2) is None


def test_who_released_it_gets_a_new_epoch() -> None:
    assert _claim(Lease(epoch=3, owner='me'), now=101, owner='me') == Lease(epoch=4, owner='me', until=131)


def test_a_clock_that_was_set_back_does_not_make_a_lease_last_for_ever() -> None:
    assert _claim(HELD, now=50, owner='you') == Lease(epoch=4, owner='you', until=80)
    assert _claim(HELD, now=50, owner='me') == Lease(epoch=3, owner='me', until=80)


def test_a_clock_that_was_set_forward_ends_a_lease_and_the_epoch_keeps_its_owner_out() -> None:
    taken = _claim(HELD, now=100_000, owner='you')
    assert taken is not None
    assert taken.epoch == 4
    assert _claim(taken, now=100_001, owner='me', claimed=100_000) is None


@given(
    st.floats(0, 1000),
    st.floats(0, 1000),
    st.floats(0, 1000),
    st.sampled_from(['me', 'you']),
    st.none() | st.integers(0, 4),
)
def test_the_epoch_never_falls_and_grows_with_each_new_owner(
    now: float, claimed: float, until: float, owner: str, over: int | None
) -> None:
    held = Lease(epoch=3, owner='me', until=until)
    lease = next_lease(held, now=now, claimed=claimed, owner=owner, seconds=30, over=over)
    if lease is None:
        assert owner == 'you' or not until
        assert over != 3
        assert over is not None or claimed <= now < until
    else:
        assert lease.epoch == (3 if owner == 'me' and until else 4)
        assert lease.until == now + 30


# Owners ---------------------------------------------------------------------------------------------------------------

OWNER = 'import sys; from habilis.core.owners import new_owner; print(new_owner(), flush=True); sys.stdin.read()'


def _start() -> tuple['subprocess.Popen[str]', str]:
    child = subprocess.Popen([sys.executable, '-c', OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return child, child.stdout.readline().strip()


def _end(child: 'subprocess.Popen[str]') -> None:
    child.kill()
    child.communicate()


def test_this_process_lives_and_each_of_its_writers_has_a_name() -> None:
    assert owner_state(new_owner()) != 'dead'
    assert new_owner() != new_owner()


def test_a_killed_process_is_dead_before_it_is_reaped() -> None:
    child, owner = _start()
    try:
        assert owner_state(owner) != 'dead'
        child.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
        assert owner_state(owner) == 'dead'
    finally:
        _end(child)
    assert owner_state(owner) == 'dead'


def test_another_process_with_the_number_of_a_dead_one_is_not_its_owner() -> None:
    machine, pid, started, token = new_owner().split('/')
    assert owner_state(f'{machine}/{pid}/{int(started) - 1}/{token}') == 'dead'


@each_case(
    'owner',
    [
        '',
        'me',
        'a/b/c/d',
        'elsewhere~boot~pid/1/1/abcd',
        '{here}/0/0/x',
        '{here}/-1/0/x',
        '{here}/²/0/x',
        '{here}/99999999999999999999999/1/x',
        '{here}/1/0',
        '{here}/x/0/x',
        '{here}/1/0/x',
    ],
)
def test_of_other_machines_and_of_nonsense_nothing_is_certain(owner: str) -> None:
    assert owner_state(owner.replace('{here}', new_owner().split('/')[0])) != 'dead'


@given(st.text())
def test_any_owner_can_be_described(owner: str) -> None:
    assert describe_owner(owner)
    assert owner_state(owner) != 'dead'


def test_an_owner_is_described_for_people() -> None:
    host = new_owner().split('~')[0]
    assert describe_owner(new_owner()) == f'process {os.getpid()} on {host}'
    assert describe_owner('') == 'another process'


FORKING = """
import os
from habilis.core.owners import new_owner, owner_state
new_owner()
if (child := os.fork()) == 0:
    own = new_owner()
    os._exit(0 if own.split('/')[1] == str(os.getpid()) and owner_state(own) == 'alive' else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='this system has no fork')
def test_a_forked_process_is_an_owner_of_its_own() -> None:
    assert subprocess.run([sys.executable, '-c', FORKING], check=False).returncode == 0


def test_where_processes_cannot_be_looked_up_they_are_asked_whether_they_live(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(pid: int) -> None:
        """As on a system without `/proc`."""

    child, owner = _start()
    monkeypatch.setattr(owners, '_started', unknown)
    try:
        assert owner_state(owner) != 'dead'
    finally:
        _end(child)
    assert owner_state(owner) == 'dead'


# Taking over ----------------------------------------------------------------------------------------------------------


async def test_the_run_of_a_dead_process_is_taken_at_once_and_one_gets_it() -> None:
    store = MemoryStore()
    async with new(store):
        pass
    child, owner = _start()
    lease = await store.claim(RUN, owner=owner, seconds=3600)
    with pytest.raises(RunBusy, match=f'process {child.pid} on '):
        await Journal.open(store, RUN)
    _end(child)
    opened = await asyncio.gather(Journal.open(store, RUN), Journal.open(store, RUN), return_exceptions=True)
    (journal,) = [journal for journal in opened if isinstance(journal, Journal)]
    assert sum(isinstance(error, RunBusy) for error in opened) == 1
    with pytest.raises(LeaseLost):
        await store.append(RUN, [], epoch=lease.epoch)
    await journal.write('noted', '')
    await journal.close()


async def test_a_clock_that_jumps_does_not_stop_the_one_who_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    store, now = MemoryStore(), [1000.0]
    monkeypatch.setattr('time.time', lambda: now[0])
    journal = await Journal.create(store, RunInfo(run=RUN))
    for jump in (1e6, -2e6, 0.0):
        now[0] += jump
        await journal.write('noted', '')
        assert (await store.claim(RUN, owner=(await store.lease(RUN)).owner, seconds=30)).epoch == 1
    await journal.write('noted', '')
    await journal.close()
    assert len(await store.load(RUN)) == 4


@pytest.mark.parametrize('jump', [-10.0, 3600.0])
async def test_a_clock_that_jumps_does_not_let_another_writer_in(monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    store, now = MemoryStore(), [1000.0]
    monkeypatch.setattr('time.time', lambda: now[0])
    journal = await Journal.create(store, RunInfo(run=RUN))
    now[0] += jump
    with pytest.raises(RunBusy, match=f'process {os.getpid()} on '):
        await Journal.open(store, RUN)
    assert await has_live_owner(store, RUN)
    await journal.close()
    await (await Journal.open(store, RUN)).close()


async def _released(store: Store) -> None:
    async with asyncio.timeout(60):
        while (await store.lease(RUN)).until:  # noqa: ASYNC110 - another thread releases it
            await asyncio.sleep(0.01)


async def test_a_run_whose_journal_was_forgotten_is_released() -> None:
    store = MemoryStore()
    async with new(store):
        pass
    journal = await Journal.open(store, RUN, seconds=0.1)
    with pytest.raises(RunBusy):
        await Journal.open(store, RUN)
    del journal
    gc.collect()
    lease = await store.lease(RUN)
    await _released(store)
    assert (await store.lease(RUN)).epoch == lease.epoch


async def test_a_run_is_released_when_the_store_is_back(faulty: Faulty) -> None:
    journal = await Journal.create(faulty, RunInfo(run=RUN))
    faulty.releases = [away(), away()]
    await journal.close()
    assert (await faulty.lease(RUN)).until
    await _released(faulty)


async def test_a_claim_whose_reply_was_lost_leaves_no_lease(faulty: Faulty) -> None:
    async with new(faulty):
        pass
    faulty.claims_after = [away()]
    with pytest.raises(StoreUnavailable):
        await Journal.open(faulty, RUN)
    await _released(faulty)
    await (await Journal.open(faulty, RUN)).close()


async def test_a_claim_that_was_cancelled_leaves_no_lease(faulty: Faulty) -> None:
    async with new(faulty):
        pass
    faulty.hold_claim = asyncio.Event()
    opening = asyncio.create_task(Journal.open(faulty, RUN))
    async with asyncio.timeout(60):
        while not (await faulty.lease(RUN)).until:  # noqa: ASYNC110
            await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait([opening])
    await _released(faulty)
