"""Tasks have states, dependencies and due dates, and are there in the next run."""

from datetime import date

import pytest

from habilis.core.errors import RememberError
from habilis.memory import Memory
from tests.memory.conftest import Open


async def test_a_task_is_listed_by_another_process_of_the_same_user(memory: Memory, open_memory: Open) -> None:
    late = await memory.add_task('Write the report', due=date(2030, 2, 1), notes='with figures')
    early = await memory.add_task('Buy milk', due=date(2030, 1, 1))
    never = await memory.add_task('Learn to juggle')
    assert (late.number, early.number, never.number) == (1, 2, 3)
    assert await open_memory().tasks() == [early, late, never]
    done = await memory.update_task(2, state='completed')
    assert done.updated >= early.updated
    assert await open_memory().tasks() == [late, never]
    assert await open_memory().tasks(all=True) == [done, late, never]


async def test_a_task_changes_only_in_what_is_given(memory: Memory) -> None:
    task = await memory.add_task('x', due=date(2030, 1, 1), notes='n')
    changed = await memory.update_task(task.number, title='y')
    assert (changed.title, changed.due, changed.notes) == ('y', date(2030, 1, 1), 'n')
    assert (await memory.update_task(task.number, clear_due=True)).due is None


async def test_a_state_that_is_none_is_refused(memory: Memory) -> None:
    task = await memory.add_task('x')
    with pytest.raises(RememberError, match="'finished' is not a state of a task: use one of pending, in_progress"):
        await memory.update_task(task.number, state='finished')  # pyright: ignore[reportArgumentType]
    assert await memory.tasks() == [task]


async def test_dependencies_must_exist_and_must_not_go_in_circles(memory: Memory) -> None:
    a = await memory.add_task('a')
    b = await memory.add_task('b', after=[a.number])
    c = await memory.add_task('c', after=[b.number, b.number])
    assert c.after == (b.number,)
    with pytest.raises(RememberError, match='cannot depend on itself'):
        await memory.update_task(a.number, after=[c.number])
    with pytest.raises(RememberError, match='there is no task 9'):
        await memory.add_task('d', after=[9])
    with pytest.raises(RememberError, match='must wait for 1'):
        await memory.update_task(b.number, state='completed')
    await memory.update_task(a.number, state='completed')
    await memory.update_task(b.number, state='completed')


async def test_a_deleted_task_is_no_longer_waited_for(memory: Memory) -> None:
    a = await memory.add_task('a')
    b = await memory.add_task('b', after=[a.number])
    await memory.remove_task(a.number)
    assert [task.after for task in await memory.tasks()] == [()]
    with pytest.raises(RememberError, match='there is no task 1'):
        await memory.remove_task(a.number)
    await memory.update_task(b.number, state='completed')


@pytest.mark.parametrize('title', ['', '   ', 'x' * 501])
async def test_a_title_must_have_some_characters(memory: Memory, title: str) -> None:
    with pytest.raises(RememberError, match='the title of a task'):
        await memory.add_task(title)
