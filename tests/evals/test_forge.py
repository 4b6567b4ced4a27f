"""`python -m evals.forge`: what it builds, judges, prints and writes. The model is scripted."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from evals import dishonest, forge
from evals.dishonest import DECEITS
from evals.forge import LENIENT, BuildOutcome, evaluate, load_problems, parse_arguments, table
from evals.outcomes import read_as
from evals.sets import MissingData
from habilis.models import Message, ScriptedModel

PROBLEMS = [
    {'task_id': 1, 'text': 'Add one.', 'tests': ['assert add(1) == 2', 'assert add(-1) == 0'], 'setup': ''},
    {'task_id': 2, 'text': 'Add one to the size.', 'tests': ['assert add(-1) == 2', 'assert add(3) == 4'], 'setup': ''},
    {'task_id': 3, 'text': 'Add two.', 'tests': ['assert add(1) == 3', 'assert add(2) == 4'], 'setup': ''},
    {'task_id': 4, 'text': 'Nothing that is an example.', 'tests': ['add', 'assert add(1)'], 'setup': ''},
]
STUB = 'def add(n: int) -> int:\n    """Add."""\n    '
TESTS = 'def test_{0}():\n    assert add({0}) == {1}\n'


def reply(messages: Sequence[Message]) -> str:
    """Right for the first task, too narrow for the second, wrong for the third."""
    asked = '\n'.join(message.text for message in messages)
    size = 'size' in asked
    if 'Write tests' in messages[-1].text:
        return '```python\n' + ''.join(TESTS.format(n, n + 1) for n in (4, 5, 0)) + '```'
    body = 'return n + 1' if not size else 'return 2 if n == -1 else n + 1 if n != 3 else 0'
    return f'```python\n{STUB}{body}\n```'


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tasks, and a model for them."""

    def load(_: str) -> ScriptedModel:
        return ScriptedModel(reply)

    monkeypatch.setattr(forge, 'load_model', load)
    (tmp_path / 'mbpp-4.jsonl').write_text(''.join(f'{json.dumps(row)}\n' for row in PROBLEMS), encoding='utf-8')
    return tmp_path


async def run(data: Path, *arguments: str) -> str:
    """What a run prints."""
    said: list[str] = []
    command = ['--data', str(data), '--candidates', '1', '--results', str(data / 'results.jsonl'), *arguments]
    await evaluate(parse_arguments(command), said.append)
    return '\n'.join(said)


async def test_hidden_tests_judge_what_was_kept_and_a_second_run_continues(data: Path) -> None:
    shown = await run(data, '--limit', '2')
    assert [line.split()[:3] for line in shown.splitlines()[:4]] == [
        ['right', '1', 'red'],
        ['right', '1', 'no'],
        ['WRONG', '2', 'red'],
        ['WRONG', '2', 'no'],
    ]
    assert 'no red check  2         2     1      50.0%' in shown

    shown = await run(data)
    assert [line.split()[:2] for line in shown.splitlines()[:4:2]] == [['refused', '3'], ['failed', '4']]
    assert '   2 no implementation passes the tests' in shown
    outcomes = [one for one in read_as(BuildOutcome, data / 'results.jsonl') if one.side == LENIENT]
    assert [(one.task, one.status, one.right) for one in outcomes] == [
        (1, 'built', True),
        (2, 'built', False),
        (3, 'refused', None),
        (4, 'failed', None),
    ]
    assert all(one.tokens > 0 and one.seconds >= 0 for one in outcomes[:3])
    assert 'not an example' in outcomes[3].reason


async def test_both_sides_see_the_same_replies(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def count(messages: Sequence[Message]) -> str:
        asked.append(messages[-1].text)
        return reply(messages)

    def load(_: str) -> ScriptedModel:
        return ScriptedModel(count)

    monkeypatch.setattr(forge, 'load_model', load)
    await run(data, '--limit', '1', '--candidates', '3')
    assert len(asked) == 5, 'one specification, one set of tests, three candidates'
    strict, lenient = read_as(BuildOutcome, data / 'results.jsonl')
    assert strict.tokens == lenient.tokens


async def test_no_dishonest_build_is_registered_and_all_honest_ones_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dishonest, 'HONEST', 3)
    said: list[str] = []
    await evaluate(parse_arguments(['--dishonest']), said.append)
    *builds, refused, kept = said
    assert [one for one in builds[:-3] if not one.startswith('refused')] == []
    assert refused.startswith(f'0 of {2 * len(DECEITS)} dishonest builds were registered: ')
    assert kept.startswith('3 of 3 honest builds were registered: ')


def test_a_seed_shuffles_the_tasks_always_alike(data: Path) -> None:
    orders = [[one.task for one in load_problems(data, seed=seed)] for seed in (None, 1, 1, 2)]
    assert orders[0] == [1, 2, 3, 4]
    assert orders[1] == orders[2]
    assert sorted(orders[3]) == orders[0]


def test_a_folder_without_tasks_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match='no mbpp'):
        load_problems(tmp_path)


def test_without_a_kept_tool_there_is_no_precision() -> None:
    refused = BuildOutcome(
        task=1, side='red check', model='m', status='refused', right=None, reason='no: x', seconds=1.0, tokens=2
    )
    assert '–' in table([refused])
