"""The todo list and the subagents of a chat: live rows, folded when they are done, opened on demand."""

import re

import pytest

from habilis.agent.events import AgentEvent
from habilis.cli.chat.progress import TurnProgress
from tests.cli.chat import code
from tests.cli.chat.people import Chats, Person

Capture = pytest.CaptureFixture[str]


def items(count: int, done: int) -> str:
    states = ['completed'] * done + ['in_progress'] + ['pending'] * (count - done - 1)
    listed = [{'id': number, 'text': f'Part {number}', 'status': state} for number, state in enumerate(states, 1)]
    return f'shown = todo_write({listed})\n'


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """All rows that were shown, one after another."""
    found: list[list[str]] = []
    take = TurnProgress.take

    def watched(progress: TurnProgress, event: AgentEvent) -> str | None:
        shown = take(progress, event)
        rows = [re.sub(r' · \d+ s$', '', row) for row in progress.rows()]
        if rows and rows not in found[-1:]:
            found.append(rows)
        return shown

    monkeypatch.setattr(TurnProgress, 'take', watched)
    return found


async def test_the_list_is_shown_while_the_turn_works_in_few_rows_and_can_be_read_afterwards(
    chats: Chats, seen: list[list[str]], capsys: Capture
) -> None:
    await chats.chat(
        Person('Do it.', '/todo', '/todo'), [code(items(3, 1)), code(items(20, 9)), code('final_answer(1)')]
    )
    part = ['[x] 9: Part 9', '[>] 10: Part 10', *(f'[ ] {number}: Part {number}' for number in (11, 12, 13))]
    assert seen == [['[x] 1: Part 1', '[>] 2: Part 2', '[ ] 3: Part 3'], [*part, '… 9 of 20 done: /todo']]
    shown = capsys.readouterr().out
    assert '← todo_write' not in shown
    assert shown.count('[ ] 20: Part 20') == 2


async def test_a_subagent_is_one_row_while_it_works_one_line_when_it_is_done_and_can_be_opened(
    chats: Chats, seen: list[list[str]], capsys: Capture
) -> None:
    replies = [code("final_answer(await delegate('Count the boats'))"), code('boats = 3'), code('final_answer(boats)')]
    await chats.chat(Person('Do it.', '/show', '/show 1', '/show 7'), replies, delegate=True)
    assert seen == [[f'▸ code: Count the boats · {steps}'] for steps in ('0 steps', '1 step', '2 steps')]
    folded, opened = capsys.readouterr().out.split('> /show 1\n')
    assert folded.count('▸ code: Count the boats · 2 steps · ') == 1
    assert ' · /show 1\n' in folded
    assert 'boats = 3' not in folded
    assert '  code 1 · step 1 · ' in opened
    assert ' · boats = 3\n' in opened
    assert 'error: no such subagent: 7; /show lists them' in opened
