"""`python -m evals.run`: what it runs, shows and writes. The model is scripted; the other framework is a stand-in."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evals import scores
from evals.outcome import Outcome
from evals.run import WrongRequest, parse_arguments, selected, smolagents, solve_all
from evals.smolagents_side import documented
from evals.tasks import TASKS, exchange_rate
from tests.evals.solutions import SOLUTIONS

ROOT = Path(__file__).parents[2]
STAND_IN = """#!{python}
import json, sys
assert sys.argv[1:] == ['-m', 'evals.smolagents_side'], sys.argv
order = json.load(sys.stdin)
print(json.dumps(dict(task=order['task'], solved=True, answer=json.dumps(order), seconds=2.5, steps=3, tokens=70)))
"""


def outcome(task: str, *, solved: bool = True, seconds: float = 1.0, answer: str = '42') -> Outcome:
    return Outcome(task=task, solved=solved, answer=answer, seconds=seconds, steps=2, tokens=30)


def run(*arguments: str, replies: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / 'script.jsonl'
    script.write_text('\n'.join(map(json.dumps, replies)), encoding='utf-8')
    command = [sys.executable, '-m', 'evals.run', '--model', f'scripted:{script}', *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def solution(task: str) -> str:
    return f'```python\n{SOLUTIONS[task]}\nfinal_answer(answer)\n```'


# The command ----------------------------------------------------------------------------------------------------------


def test_solved_tasks_are_shown_counted_and_written(tmp_path: Path) -> None:
    replies = [solution(task.id) for task in TASKS if task.category == 'sorting']
    files = tmp_path / 'all.json', tmp_path / 'page.md'
    done = run(
        '--only', 'sorting', '--json', str(files[0]), '--markdown', str(files[1]), replies=replies, folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('SCRIPTED: ')
    shown = [line.split()[:3] for line in done.stdout.splitlines() if line.startswith('ok')]
    assert shown == [['ok', 'habilis', task.id] for task in TASKS if task.category == 'sorting']
    assert 'habilis: 100.0% solved (4 of 4)' in done.stdout
    written: Any = json.loads(files[0].read_text('utf-8'))
    assert written['model'].startswith('scripted:')
    assert written['frameworks']['habilis']['rate'] == 1
    assert len(written['frameworks']['habilis']['outcomes']) == 4
    assert '| sorting | 4/4 |' in files[1].read_text('utf-8')


def test_too_few_solved_tasks_are_exit_code_1(tmp_path: Path) -> None:
    done = run('--only', 'gcd', replies=['```python\nfinal_answer(123456 % 7890)\n```'], folder=tmp_path)
    assert done.returncode == 1
    [line] = [line for line in done.stdout.splitlines() if line.startswith('FAIL')]
    assert line.endswith('tokens  5106, expected 6')


def test_the_tasks_that_were_held_out_are_run_by_themselves(tmp_path: Path) -> None:
    done = run('--held-out', '--only', 'seconds', replies=[solution('seconds')], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '\nok   habilis    seconds ' in done.stdout


@pytest.mark.parametrize(
    ('arguments', 'complaint'),
    [
        (['--held-out', '--only', 'gcd'], "no task or category is named 'gcd'"),
        (['--only', 'gcd,geography'], "no task or category is named 'geography'; the categories are arithmetic, "),
        (['--only', ' , '], '--only needs the name of a task'),
        (['--repeat', '0'], '--repeat must be 1 or more, not 0'),
        (['--peer', 'smolagents'], 'has no weights to start a server with; give the server of a model with --url'),
        (['--url', 'http://127.0.0.1:9/v1'], 'no model server answers at http://127.0.0.1:9/v1'),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    done = run(*arguments, replies=[], folder=tmp_path)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith('evals: ')
    assert complaint in line


def test_without_arguments_it_is_all_tasks_with_the_embedded_model() -> None:
    arguments = parse_arguments([])
    assert (arguments.model, arguments.url, arguments.peer, arguments.yes) == ('local:', None, None, False)
    assert arguments.peer_python == sys.executable
    assert selected(arguments.only, arguments.repeat) == TASKS


def test_tasks_and_categories_can_be_chosen_and_repeated() -> None:
    chosen = selected('gcd, sorting', 2)
    ids = ['gcd', 'sort-length', 'top-three', 'sort-last-digit', 'median']
    assert [task.id for task in chosen] == [name for name in ids for _ in range(2)]


# Another framework ----------------------------------------------------------------------------------------------------


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """Where another Python would be."""
    python = tmp_path / 'python'
    python.write_text(STAND_IN.format(python=sys.executable), encoding='utf-8')
    python.chmod(0o755)
    return python


async def test_frameworks_take_turns_and_get_the_same_bounds(stand_in: Path) -> None:
    said: list[str] = []

    async def first(task: Any) -> Outcome:
        return outcome(task.id)

    frameworks = {'habilis': first, 'smolagents': smolagents(str(stand_in), 'http://127.0.0.1:9/v1', 'tiny')}
    outcomes = await solve_all(selected('gcd,train,vowels'), frameworks, said.append)
    assert [line.split()[1:3] for line in said] == [
        ['habilis', 'gcd'],
        ['habilis', 'train'],
        ['smolagents', 'gcd'],
        ['smolagents', 'train'],
        ['habilis', 'vowels'],
        ['smolagents', 'vowels'],
    ]
    assert [one.task for one in outcomes['smolagents']] == ['gcd', 'train', 'vowels']
    assert json.loads(outcomes['smolagents'][0].answer) == {
        'task': 'gcd',
        'url': 'http://127.0.0.1:9/v1',
        'model': 'tiny',
        'steps': 8,
        'seconds': 240,
        'max_tokens': 2048,
    }


async def test_a_python_without_the_framework_is_named(stand_in: Path) -> None:
    stand_in.write_text('#!/bin/sh\necho "ModuleNotFoundError: No module named \'smolagents\'" >&2\nexit 1\n')
    solve = smolagents(str(stand_in), 'http://127.0.0.1:9/v1', 'tiny')
    with pytest.raises(WrongRequest, match=r"No module named 'smolagents'\. Name a Python that has it: --peer-python"):
        await solve(TASKS[0])


async def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongRequest, match='nowhere cannot be started: No such file'):
        await smolagents(str(tmp_path / 'nowhere'), 'http://127.0.0.1:9/v1', 'tiny')(TASKS[0])


def test_a_tool_for_smolagents_names_its_arguments_and_does_the_same() -> None:
    copy = documented(exchange_rate)
    assert copy.__doc__ is not None
    assert copy.__doc__.endswith('\n\nArgs:\n    source: The source.\n    target: The target.')
    assert copy('EUR', 'USD') == exchange_rate('EUR', 'USD')
    assert exchange_rate.__doc__ is not None
    assert 'Args:' not in exchange_rate.__doc__


# Scores ---------------------------------------------------------------------------------------------------------------

OUTCOMES = {
    'habilis': [outcome('gcd', seconds=1), outcome('train', seconds=5), outcome('median', seconds=3)],
    'other': [outcome('gcd', seconds=10), outcome('train', solved=False, answer='a|b'), outcome('median', seconds=4)],
}
CHOSEN = selected('gcd,train,median')


def test_the_table_has_a_row_for_each_category_and_one_for_all() -> None:
    rows = scores.table(CHOSEN, OUTCOMES)
    assert [row[0] for row in rows] == ['category', 'arithmetic', 'sorting', 'all']
    assert rows[1] == ['arithmetic', '2/2', '3.0 s', '3.0 s', '1/2', '5.5 s', '5.5 s']
    assert rows[3] == ['all', '3/3', '3.0 s', '3.0 s', '2/3', '4.0 s', '5.0 s']


def test_the_table_is_aligned() -> None:
    heading, first, *_ = scores.plain(scores.table(CHOSEN, OUTCOMES)).splitlines()
    assert heading.index('habilis: solved') == first.index('2/2')
    assert heading.index('other: solved') == first.index('1/2')


def test_the_totals_are_said_in_words() -> None:
    assert scores.summary(OUTCOMES) == [
        'habilis: 100.0% solved (3 of 3), 3.0 s per task in the median, 3.0 s on average',
        'other: 66.7% solved (2 of 3), 4.0 s per task in the median, 5.0 s on average',
    ]


def test_the_page_names_what_was_not_solved() -> None:
    page = scores.markdown('Small tasks', CHOSEN, OUTCOMES)
    assert page.startswith('# Small tasks\n\n| category | habilis: solved |')
    assert '| train | other | `a\\|b` | `150.0` |' in page


def test_a_long_answer_is_one_short_line() -> None:
    line = scores.line('habilis', TASKS[0], outcome('percent', solved=False, answer='one\ntwo ' + 'x' * 500))
    assert '\n' not in line
    assert line.endswith('x…, expected 434.0')
