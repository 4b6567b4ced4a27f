"""What belongs to one project stays out of another; preferences are the same everywhere."""

from habilis.memory import Memory
from tests.memory.conftest import Open


async def _fill(memory: Memory) -> None:
    boats, shop = memory.within('/boats'), memory.within('/shop')
    await boats.add_turn('b', 'user', 'The invoice of the harbour is paid')
    await boats.add_fact('The invoice goes to Ann')
    await boats.add_fact('Amounts in euros', 'preference')
    await boats.add_fact('Ann keeps every invoice', everywhere=True)
    await boats.add_task('Paint the boat')
    await shop.add_turn('s', 'user', 'The invoice of the shop is open')
    await shop.add_task('Count the stock')


async def test_a_project_sees_its_own_and_what_belongs_to_all(memory: Memory, open_memory: Open) -> None:
    await _fill(memory)
    shop = open_memory().within('/shop')
    assert {hit.entry.text for hit in await shop.search('invoice')} == {
        'The invoice of the shop is open',
        'Ann keeps every invoice',
    }
    context = (await shop.context_for('Which invoice is there?')).text
    assert 'Amounts in euros' in context
    assert 'harbour' not in context
    assert [fact.text for fact in await shop.facts()] == ['Amounts in euros', 'Ann keeps every invoice']
    assert [task.title for task in await shop.tasks()] == ['Count the stock']
    assert [(one.session, one.project) for one in await shop.sessions()] == [('s', '/shop')]
    assert [turn.session for turn in await shop.turns()] == ['s']
    assert [turn.session for turn in await shop.turns('b')] == ['b']  # it was named

    shop.sees_all = True
    assert len(await shop.search('invoice')) == len(await memory.search('invoice')) == 4
    assert len(await shop.tasks()) == len(await memory.tasks()) == 2


async def test_the_same_fact_of_another_project_is_kept_for_both(memory: Memory) -> None:
    one = await memory.within('/boats').add_fact('Tests run with make')
    other = await memory.within('/shop').add_fact('Tests run with make')
    assert one.id != other.id
    again = await memory.within('/shop').add_fact('Tests run with make.')
    assert again == other


async def test_an_export_keeps_the_projects(memory: Memory, open_memory: Open) -> None:
    await _fill(memory)
    other = open_memory(user='eve')
    await other.import_lines(await memory.export())
    assert await other.within('/shop').tasks() == await memory.within('/shop').tasks()
    assert await other.within('/boats').facts() == await memory.within('/boats').facts()
