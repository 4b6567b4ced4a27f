"""What is special about runs in memory."""

import pytest

from habilis.core.errors import RunBusy
from habilis.journal.contract import RunInfo
from habilis.journal.stores import memory
from habilis.journal.stores.conformance_values import records
from habilis.journal.stores.memory import MemoryStore


async def test_two_stores_share_nothing() -> None:
    one, other = MemoryStore(), MemoryStore()
    await one.create(RunInfo(run='run-1'))
    assert await other.runs() == []


async def test_the_runs_stay_when_the_store_is_closed() -> None:
    store = MemoryStore()
    await store.create(RunInfo(run='run-1'))
    lease = await store.claim('run-1', owner='me', seconds=60)
    await store.close()
    await store.append('run-1', records(2), epoch=lease.epoch)
    assert await store.load('run-1') == records(2)


async def test_a_clock_that_is_set_back_does_not_make_a_lease_last_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    await store.create(RunInfo(run='run-1'))
    monkeypatch.setattr(memory.time, 'time', lambda: 1000.0)
    assert (await store.claim('run-1', owner='me', seconds=60)).epoch == 1
    monkeypatch.setattr(memory.time, 'time', lambda: 900.0)
    assert (await store.claim('run-1', owner='you', seconds=60)).epoch == 2
    with pytest.raises(RunBusy):
        await store.claim('run-1', owner='me', seconds=60)
