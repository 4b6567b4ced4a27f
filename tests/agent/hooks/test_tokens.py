"""The token tracker has the sum of what models said they used."""

import asyncio
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from habilis.agent.events import ModelReplied
from habilis.agent.hooks import TokenTracker
from habilis.agent.hooks.tokens import format_cost
from habilis.core.errors import HabilisError
from habilis.models.contract import Reply, Usage
from habilis.models.scripted import ScriptedModel
from tests.agent.hooks.samples import SAMPLES, sample
from tests.agent.hooks.watching import ANSWER, agent, code, watch
from tests.cases import each_case

FIRST = Usage(requests=1, input_tokens=100, output_tokens=10, cached_tokens=40, seconds=1.5, cost=0.25)
SECOND = Usage(requests=1, input_tokens=200, output_tokens=20, seconds=2.5, cost=0.5)


def replies() -> list[Reply]:
    """Two steps whose usage is known."""
    return [Reply(text=code('print(1)'), usage=FIRST), Reply(text=ANSWER, usage=SECOND)]


async def test_the_total_is_the_sum_of_all_replies() -> None:
    tracker = TokenTracker()
    result = await watch(replies(), tracker)
    assert tracker.total == FIRST + SECOND == result.usage
    assert tracker.total.seconds == 4.0


async def test_models_and_agents_are_counted_apart() -> None:
    tracker = TokenTracker()
    await watch(ScriptedModel(replies(), name='scripted:a'), tracker, name='planner')
    await watch(ScriptedModel(replies()[1:], name='scripted:b'), tracker, name='worker')
    assert tracker.by_model == {'scripted:a': FIRST + SECOND, 'scripted:b': SECOND}
    assert tracker.by_agent == {'planner': FIRST + SECOND, 'worker': SECOND}


async def test_runs_at_the_same_time_are_all_counted() -> None:
    tracker = TokenTracker()

    async with agent(ScriptedModel(lambda _: Reply(text=ANSWER, usage=FIRST)), hooks=[tracker]) as working:
        await asyncio.gather(*(working.run('x') for _ in range(5)))
    assert tracker.total == sum([FIRST] * 5, Usage())


async def test_it_is_exported_call_by_call(tmp_path: Path) -> None:
    tracker = TokenTracker()
    await watch(ScriptedModel(replies(), name='scripted:a'), tracker, name='planner')
    tracker.export(tmp_path / 'usage.json')
    book = json.loads((tmp_path / 'usage.json').read_text('utf-8'))
    assert book['total']['input_tokens'] == 300
    assert [entry['cost'] for entry in book['entries']] == [0.25, 0.5]
    tracker.export(tmp_path / 'usage.csv')
    assert len((tmp_path / 'usage.csv').read_text('utf-8').splitlines()) == 3


def test_a_file_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HabilisError, match=r'\.json or \.csv'):
        TokenTracker().export(tmp_path / 'usage.xml')


def shown(tracker: TokenTracker) -> str:
    """The table as text."""
    console = Console(file=io.StringIO(), width=120)
    console.print(tracker.table())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def replied(model: str, agent_name: str, usage: Usage) -> ModelReplied:
    """A reply that came."""
    return ModelReplied(agent=agent_name, reply=Reply(model=model, usage=usage), at=datetime.now(UTC))


def test_the_table_has_a_line_for_each_agent_and_model_and_a_total() -> None:
    tracker = TokenTracker()
    tracker(replied('a:big', 'planner', FIRST))
    tracker(replied('a:big', 'planner', FIRST))
    tracker(replied('a:small', 'planner', SECOND))
    table = shown(tracker)
    [line] = [line for line in table.splitlines() if 'a:big' in line]
    assert [cell.strip() for cell in line.strip('│').split('│')] == [
        'planner', 'a:big', '2', '200', '80', '20', '3.0', '$0.5000'
    ]  # fmt: skip
    [total] = [line for line in table.splitlines() if 'total' in line]
    assert '$1.00' in total


def test_names_in_the_table_are_not_taken_as_markup() -> None:
    tracker = TokenTracker()
    tracker(replied('[bold]m', '[/red]', FIRST))
    assert '[bold]m' in shown(tracker)
    assert '[/red]' in shown(tracker)


def test_an_empty_tracker_has_an_empty_table() -> None:
    assert TokenTracker().total == Usage()
    assert 'total' in shown(TokenTracker())


def test_other_events_count_nothing() -> None:
    tracker = TokenTracker()
    for kind in SAMPLES.keys() - {'model_replied'}:
        tracker(sample(kind, 'x'))
    assert tracker.total == Usage()


@each_case(
    ('cost', 'text'), [(None, '–'), (0.0, '$0.00'), (0.00123, '$0.0012'), (0.5, '$0.5000'), (1234.5, '$1,234.50')]
)
def test_money_is_readable(cost: float | None, text: str) -> None:
    assert format_cost(cost) == text
