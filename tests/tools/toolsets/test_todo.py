"""The toolset `todo`."""

import pytest

from habilis.core.errors import ToolArgumentsError, ToolCallError
from habilis.tools import Toolbox, todo_toolset


def item(name: int | str, status: str = 'pending', text: str = 'work') -> dict[str, object]:
    return {'id': name, 'text': text, 'status': status}


@pytest.fixture
def box() -> Toolbox:
    return Toolbox([todo_toolset()])


async def test_h6_a_list_is_written_and_read(box: Toolbox) -> None:
    items = [item(1, 'completed'), item('two', 'in_progress'), item(3)]
    assert await box.call('todo_write', items) == '[x] 1: work\n[>] two: work\n[ ] 3: work'
    assert await box.call('todo_read') == items
    assert await box.call('todo_write', []) == '(empty)'
    assert await box.call('todo_read') == []


@pytest.mark.parametrize(
    ('items', 'complaint'),
    [
        ([item(1, 'in_progress'), item(2, 'in_progress')], 'items 1, 2 are all in progress; at most one may be'),
        ([item(1), item(1)], 'id 1 is used twice'),
        ([item(1), item('1')], 'id 1 is used twice'),
        ([item(1, text='  ')], 'item 1 has no text'),
        ([item(' ')], 'an id is empty'),
    ],
)
async def test_h6_the_rules_are_enforced_and_the_list_stays(
    box: Toolbox, items: list[dict[str, object]], complaint: str
) -> None:
    await box.call('todo_write', [item(7)])
    with pytest.raises(ToolCallError, match=complaint):
        await box.call('todo_write', items)
    assert await box.call('todo_read') == [item(7)]


@pytest.mark.parametrize('items', [[item(1, 'done')], [{'id': 1}], 'text', [item(1.5)], [5]])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
async def test_h6_items_of_another_shape_are_refused(box: Toolbox, items: object) -> None:
    with pytest.raises(ToolArgumentsError, match='todo_write was not called'):
        await box.call('todo_write', items)


async def test_h6_each_agent_has_a_list_of_its_own() -> None:
    one, other = Toolbox([todo_toolset()]), Toolbox([todo_toolset()])
    await one.call('todo_write', [item(1)])
    assert await other.call('todo_read') == []


async def test_h6_runs_that_share_the_toolset_have_lists_of_their_own() -> None:
    toolset = todo_toolset()
    one, other = Toolbox([toolset]), Toolbox([toolset])
    await one.call('todo_write', [item(1)])
    assert await other.call('todo_read') == []
    await other.call('todo_write', [item(2)])
    assert await one.call('todo_read') == [item(1)]


def test_h6_the_tools_work_without_a_toolbox() -> None:
    write, read = (made.function for made in todo_toolset().tools)
    write([item(1)])
    assert read() == [item(1)]


async def test_what_was_read_is_a_copy(box: Toolbox) -> None:
    await box.call('todo_write', [item(1)])
    read = await box.call('todo_read')
    assert isinstance(read, list)
    read.clear()
    assert await box.call('todo_read') == [item(1)]
