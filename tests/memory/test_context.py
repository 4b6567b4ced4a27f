"""What goes into a prompt is relevant, within the budget, and never there twice."""

from habilis.memory import Memory


async def fill(memory: Memory) -> None:
    turn = await memory.add_turn('old', 'user', 'The budget of the Apollo project is 40,000 euros')
    await memory.add_turn('old', 'assistant', 'Noted.')
    await memory.add_fact('Apollo project: budget of 40,000 euros', source=turn.id)
    await memory.add_fact('Answer in German', 'instruction')
    await memory.add_fact('Prefers short answers', 'preference')
    for number in range(20):
        await memory.add_turn('other', 'user', f'Small talk number {number} about rain')


async def test_standing_facts_come_first_then_what_fits_the_task(memory: Memory) -> None:
    await fill(memory)
    context = await memory.context_for('What is the budget of Apollo?')
    assert [item.entry.text for item in context.items] == [
        'Prefers short answers',
        'Answer in German',
        'Apollo project: budget of 40,000 euros',
    ]
    assert [item.why.split(':')[0] for item in context.items[:2]] == ['preference', 'instruction']
    assert 'apollo' in context.items[2].why
    assert context.text.splitlines()[2].startswith('- [fact, ')
    assert context.text.endswith('] Apollo project: budget of 40,000 euros')


async def test_nothing_is_given_twice(memory: Memory) -> None:
    await fill(memory)
    first = await memory.context_for('What is the budget of Apollo?')
    again = await memory.context_for('And the budget of Apollo?', visible=first.text)
    assert [item.entry.text for item in again.items] == ['The budget of the Apollo project is 40,000 euros']
    third = await memory.context_for('Apollo?', visible=f'{first.text}\n{again.text}')
    assert third.text == ''
    assert third.items == ()


async def test_turns_of_the_conversation_under_way_are_left_out(memory: Memory) -> None:
    turn = await memory.add_turn('now', 'user', 'The Apollo project starts in May')
    assert (await memory.context_for('When does Apollo start?', session='now')).items == ()
    assert [item.entry for item in (await memory.context_for('When does Apollo start?')).items] == [turn]


async def test_the_budget_holds(memory: Memory) -> None:
    await fill(memory)
    for number in range(10):
        await memory.add_fact(f'Always remember rule {number}: {"x" * 200}', 'instruction')
    for budget in (0, 20, 100, 400):
        context = await memory.context_for('What is the budget of Apollo?', budget)
        assert context.tokens <= budget
        assert len(context.text) <= 4 * budget
    assert any('Apollo' in item.text for item in context.items)


async def test_a_task_about_something_else_gets_no_turns(memory: Memory) -> None:
    await fill(memory)
    context = await memory.context_for('Compute the 100th prime number')
    assert [item.entry.text for item in context.items] == ['Prefers short answers', 'Answer in German']


async def test_the_whole_budget_is_for_relevant_entries_where_there_is_no_standing_fact(memory: Memory) -> None:
    for number in range(20):
        await memory.add_turn('old', 'user', f'Apollo budget item {number}: {"euros " * 30}')
    context = await memory.context_for('Which budget items has Apollo?', 800)
    assert context.tokens > 700


async def test_what_was_asked_before_comes_after_what_was_said(memory: Memory) -> None:
    await memory.add_turn('old', 'user', 'What is the locker code of the gym?')
    await memory.add_turn('other', 'user', 'By the way, the locker of the gym has a new code, as of Monday.')
    context = await memory.context_for('What is the locker code of the gym?')
    assert [item.entry.text[:6] for item in context.items] == ['By the']  # and nothing is a memory of itself
    context = await memory.context_for('The locker code of the gym, please')
    assert [item.entry.text[:6] for item in context.items] == ['By the', 'What i']
