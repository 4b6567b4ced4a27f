"""Workers of a pool are killed, and others take over what they were doing."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from habilis.flows import Job, Outcome, WorkerPool
from habilis.journal.stores.urls import open_store
from tests.crash import scenario
from tests.crash.attempt import answer_all
from tests.crash.effects import FOLDER, effects_of, repeated
from tests.crash.killing import Case, House
from tests.crash.stores import STORES

RUNS = 6


async def _done(pool: WorkerPool, case: Case) -> Outcome:
    """Wait for the end of a run, and answer what it asks."""
    store = open_store(case.store)
    try:
        while (outcome := await pool.wait(case.run)).status == 'waiting':
            await answer_all(store, case.run, str(case.folder))
            await pool.submit(Job(run=case.run))
    finally:
        await store.close()
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize('house', STORES, indirect=True)
async def test_the_runs_of_a_killed_worker_are_taken_over(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = await asyncio.to_thread(lambda: house.expected)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv('TMPDIR', str(tmp_path / 'temporary'))
    cases = [house.case() for _ in range(RUNS)]
    async with WorkerPool(house.store, apps=[scenario.__name__], workers=2, limit=2, pause=0.05) as pool:
        for case in cases:
            await pool.submit(Job(target=scenario.TARGET, run=case.run))
        while sum(len(case.effects) for case in cases) < 3 * len(expected.labels):  # noqa: ASYNC110 - of others
            await asyncio.sleep(0.005)
        os.kill(pool.pids[0], signal.SIGKILL)
        await asyncio.to_thread(lambda: [case.look() for case in cases])
        outcomes = await asyncio.gather(*(_done(pool, case) for case in cases))
        assert len(pool.pids) == 2
    assert [outcome.error for outcome in outcomes] == [''] * RUNS
    assert [outcome.value for outcome in outcomes] == [expected.value] * RUNS
    for case in cases:
        await asyncio.to_thread(case.look)
        effects = effects_of(tmp_path, case.run)
        assert repeated(effects) == []
        assert {effect.label for effect in effects} == expected.labels
    await asyncio.to_thread(house.check_leftovers)
