"""A research that is killed, stopped, paused or changed on its way."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from habilis.core.errors import ModelRefused
from habilis.flows import FlowPaused
from habilis.journal import MemoryStore
from habilis.models.contract import Message, Reply, Usage
from habilis.models.scripted import ScriptedModel
from habilis.research import Folder, Research, read_state
from habilis.research.contract import PlanChange
from habilis.research.html_report import render_html
from habilis.research.markdown_report import render_markdown
from habilis.research.plan_changes import change_plan
from habilis.research.state import report_so_far
from tests.journal.dying import dying
from tests.research.script import GOAL, Scholar, make_pages, scholar


@pytest.fixture
def pages(tmp_path: Path) -> Folder:
    return Folder(make_pages(tmp_path / 'pages'))


@pytest.mark.slow
async def test_killed_after_any_operation_it_resumes_to_the_same_report(pages: Folder) -> None:
    expected = await Research(scholar(), pages).run(GOAL, effort='low', journal=MemoryStore())
    operations, ended = 2, False  # the run is created and claimed
    while not ended:
        store = MemoryStore()
        with dying(store, operations) as its_store:
            await Research(scholar(), pages).run(GOAL, effort='low', journal=its_store, run_id='one')
        ended = not its_store.is_dead
        report = await Research(scholar(), pages).resume('one', journal=store)
        assert render_html(report) == render_html(expected), f'killed after {operations} operations'
        assert report.spent == expected.spent
        operations += 1
    assert operations > 20


async def test_killed_again_and_again_it_comes_to_its_end(pages: Folder) -> None:
    store, ended, deaths = MemoryStore(), False, 0
    expected = await Research(scholar(), pages).run(GOAL, effort='medium', journal=MemoryStore())
    with dying(store, 5) as its_store:
        await Research(scholar(), pages).run(GOAL, effort='medium', journal=its_store, run_id='one')
    while not ended:
        with dying(store, 12) as its_store:
            await Research(scholar(), pages).resume('one', journal=its_store)
        ended, deaths = not its_store.is_dead, deaths + 1
    assert deaths > 5
    report = await Research(scholar(), pages).resume('one', journal=store)
    assert render_html(report) == render_html(expected)


async def test_stopped_it_gives_the_report_so_far_and_resumes(pages: Folder) -> None:
    store, reached = MemoryStore(), asyncio.Event()
    script = Scholar()

    async def until_written(messages: Sequence[Message]) -> str:
        if 'the part "Length of the Tovar"' in messages[-1].text:
            while not (await read_state(store, 'one')).sections:  # noqa: ASYNC110 - the other part is written
                await asyncio.sleep(0.01)
            reached.set()
            await asyncio.Event().wait()
        return script(messages)

    running = asyncio.create_task(
        Research(ScriptedModel(until_written), pages).run(GOAL, effort='low', journal=store, run_id='one')
    )
    await reached.wait()
    running.cancel()
    await asyncio.wait([running])
    assert (await store.info('one')).status == 'stopped'
    text = render_markdown(await report_so_far(store, 'one'))
    assert '412 km' in text
    assert 'not complete' in text
    report = await Research(scholar(), pages).resume('one', journal=store)
    assert [section.title for section in report.sections] == ['Length of the Kelda', 'Length of the Tovar']


async def test_before_a_section_is_written_the_report_so_far_has_what_was_found(pages: Folder) -> None:
    store = MemoryStore()

    def no_outline(messages: Sequence[Message]) -> str:
        if 'Write the outline' in messages[-1].text:
            raise ModelRefused('no')
        return Scholar()(messages)

    with pytest.raises(ModelRefused):
        await Research(ScriptedModel(no_outline), pages).run(GOAL, effort='low', journal=store, run_id='one')
    report = await report_so_far(store, 'one')
    assert [section.title for section in report.sections] == [
        'How long is the river Kelda?',
        'How long is the river Tovar?',
    ]
    assert report.citations
    assert not report.is_complete


async def test_a_spend_limit_pauses_the_run(pages: Folder) -> None:
    store, script = MemoryStore(), Scholar()

    def dear(messages: Sequence[Message]) -> Reply:
        return Reply(text=script(messages), usage=Usage(requests=1, input_tokens=10, output_tokens=1, cost=0.10))

    with pytest.raises(FlowPaused):
        await Research(ScriptedModel(dear), pages, max_cost=0.35).run(GOAL, effort='low', journal=store, run_id='one')
    assert (await store.info('one')).status == 'waiting'
    spent = (await read_state(store, 'one')).spent
    assert 0.35 <= spent.cost < 0.75
    report = await Research(ScriptedModel(dear), pages, max_cost=5).resume('one', journal=store)
    assert report.is_complete
    assert report.spent.calls == pytest.approx(report.spent.cost / 0.10)


async def test_a_change_of_the_plan_while_it_runs_is_obeyed_by_the_next_planning(pages: Folder) -> None:
    store = MemoryStore()
    research: Research

    async def change_while_reading(messages: Sequence[Message]) -> str:
        if 'Write the artifact' in messages[-1].text and 'Kelda?' in messages[-1].text:
            await research.change_plan(PlanChange(add='How old is the river Kelda?', drop=2))
        return Scholar()(messages)

    research = Research(ScriptedModel(change_while_reading), pages)
    report = await research.run(GOAL, effort='low', journal=store, run_id='one')
    assert '287 km' not in render_markdown(report)
    plan = (await read_state(store, 'one')).plan
    assert [(one.text, one.status, one.by_user) for one in plan[1:]] == [
        ('How long is the river Tovar?', 'dropped', True),
        ('How old is the river Kelda?', 'done', True),
    ]


async def test_the_plan_of_a_stopped_run_can_be_changed(pages: Folder) -> None:
    store = MemoryStore()
    with dying(store, 8) as its_store:
        await Research(scholar(), pages).run(GOAL, effort='medium', journal=its_store, run_id='one')
    await change_plan(store, 'one', PlanChange(add='Where does the river Kelda rise?'))
    model = scholar()
    await Research(model, pages).resume('one', journal=store)
    asked = [one.messages[-1].text for one in model.requests if 'are open now' in one.messages[-1].text]
    assert 'must be a sub-goal: Where does the river Kelda rise?' in asked[0] + asked[-1]
    assert 'Where does the river Kelda rise?' in [one.text for one in (await read_state(store, 'one')).plan]


async def test_the_state_of_a_run_is_data(pages: Folder) -> None:
    store = MemoryStore()
    report = await Research(scholar(), pages).run(GOAL, effort='low', sources=['x'], journal=store, run_id='one')
    state = await read_state(store, 'one')
    assert state.goal == GOAL
    assert state.inputs['sources'] == ['x']
    assert [(one.id, one.status) for one in state.plan] == [(1, 'done'), (2, 'done')]
    assert {note.goal for note in state.notes} == {1, 2}
    assert state.sections == report.sections
    assert state.spent == report.spent
    assert state.outline == ('Two rivers', 'Length of the Kelda', 'Length of the Tovar')
