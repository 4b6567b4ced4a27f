"""Processes that are killed in the middle of a flow: another goes on, and does nothing twice. G7."""

import asyncio
from pathlib import Path

import pytest

from habilis.core.errors import RunBusy
from habilis.flows import FlowPaused
from habilis.journal.questions import answer_run
from habilis.journal.stores.urls import open_store
from tests.flows import app
from tests.flows.processes import Place, kill


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv('FLOWS_FOLDER', str(tmp_path))
    return Place(tmp_path)


EFFECTS = app.all_effects('x')


@pytest.mark.parametrize('at', EFFECTS)
async def test_killed_at_any_step_it_continues_there_and_repeats_only_what_was_under_way(place: Place, at: str) -> None:
    place.hold(at)
    process = place.begin("finish(app.everything, 'x', store, 'one')")
    await place.reached(at, process)
    with pytest.raises(RunBusy):
        await app.everything.resume('one', journal=place.store)
    kill(process)
    place.let_go(at)
    before = place.effects
    value = await app.everything.resume('one', journal=place.store)
    assert sorted(value) == sorted(name.upper() for name in EFFECTS)
    assert sorted(set(place.effects)) == sorted(EFFECTS)
    repeated = [name for name in place.effects[len(before) :] if name in before]
    assert at in repeated
    assert len(repeated) <= 2  # two steps at most were under way


async def test_killed_again_and_again_it_still_reaches_its_end(place: Place) -> None:
    stops = [EFFECTS[0], EFFECTS[2], EFFECTS[7], EFFECTS[11]]
    for stop in stops:
        place.hold(stop)
    call = "finish(app.everything, 'x', store, 'one')"
    for stop in stops:
        process = place.begin(call)
        await place.reached(stop, process)
        kill(process)
        place.let_go(stop)
        call = "app.everything.resume('one', journal=store)"
    assert len(await app.everything.resume('one', journal=place.store)) == len(EFFECTS)
    assert sorted(set(place.effects)) == sorted(EFFECTS)
    assert all(place.effects.count(stop) == 2 for stop in stops)


async def test_a_step_that_must_not_be_repeated_is_asked_about_instead(place: Place) -> None:
    place.hold('once')
    process = place.begin("finish(app.buy, 'once', store, 'one')")
    await place.reached('once', process)
    kill(process)
    place.let_go('once')
    with pytest.raises(FlowPaused, match=r"pay\(name='once'\) was running when the process died"):
        await app.buy.resume('one', journal=place.store)
    store = open_store(place.store)
    await answer_run(store, 'one', {'value': 'by hand'})
    await store.close()
    assert await app.buy.resume('one', journal=place.store) == 'by hand'
    assert place.effects == ['once']


async def test_a_question_outlives_its_process(place: Place) -> None:
    process = place.begin("finish(app.publish, 'x', store, 'one')")
    assert await asyncio.to_thread(process.wait) != 0
    store = open_store(place.store)
    assert (await store.info('one')).status == 'waiting'
    await answer_run(store, 'one', True)
    await store.close()
    assert await app.publish.resume('one', journal=place.store) == 'X-YES'


async def test_two_resumers_at_once_and_one_wins(place: Place) -> None:
    place.hold('x-begin')
    process = place.begin("finish(app.everything, 'x', store, 'one')")
    await place.reached('x-begin', process)
    kill(process)
    first = place.begin("app.everything.resume('one', journal=store)")
    await place.reached('x-begin', first)
    with pytest.raises(RunBusy, match='is being executed by process'):
        await app.everything.resume('one', journal=place.store)
    place.let_go('x-begin')
    assert await asyncio.to_thread(first.wait) == 0
    assert len(place.effects) == len(EFFECTS) + 1
