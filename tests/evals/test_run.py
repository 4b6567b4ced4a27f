"""`python -m evals.run`: what it runs, prints and writes. The model is scripted; smolagents is a stand-in."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evals import outcomes
from evals.run import SECONDS, UsageError, evaluate, main, parse_arguments, select_tasks
from evals.sets import SETS, MissingData, load_set
from evals.smolagents_side import documented
from evals.tasks import exchange_rate
from tests.evals.solutions import SOLUTIONS

ROOT = Path(__file__).parents[2]
STAND_IN = """#!{python}
import json, sys
assert sys.argv[1:] == ['-m', 'evals.smolagents_side'], sys.argv
order = json.load(sys.stdin)
print(json.dumps(dict(set=order['set'], task=order['task'], side='smolagents', solved=True,
                      answer=json.dumps(order), seconds=2.5, steps=3, tokens=70)))
"""


def write_script(folder: Path, replies: list[str]) -> str:
    script = folder / 'script.jsonl'
    script.write_text('\n'.join(map(json.dumps, replies)), encoding='utf-8')
    return f'scripted:{script}'


def run(*arguments: str, replies: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, '-m', 'evals.run', *arguments, '--model', write_script(folder, replies)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def solution(task: str) -> str:
    return f'```python\n{SOLUTIONS[task]}\nfinal_answer(answer)\n```'


def selected(*arguments: str) -> list[str]:
    return [task.id for task in select_tasks(parse_arguments(arguments), print)]


# The command ----------------------------------------------------------------------------------------------------------


def test_outcomes_are_printed_counted_and_written(tmp_path: Path) -> None:
    ids = [task.id for task in load_set('forty') if task.category == 'sorting']
    results = tmp_path / 'results.jsonl'
    replies = [*map(solution, ids[:3]), '```python\nfinal_answer(1)\n```']
    done = run('forty', '--only', 'sorting', '--results', str(results), replies=replies, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:5]] == [
        ['FAIL' if name == 'median' else 'ok', 'habilis', name] for name in ids
    ]
    assert lines[-1].split()[:5] == ['forty', 'habilis', '3/4', '75.0%', '30.1%']
    written = outcomes.read(results)
    assert [(one.set, one.task, one.side, one.solved) for one in written] == [
        ('forty', name, 'habilis', name != 'median') for name in ids
    ]
    assert written[0].model == 'scripted:script'
    assert [bool(one.transcript) for one in written] == [False, False, False, True]
    assert written[3].transcript[-1][0] == 'assistant'


def test_tasks_that_the_results_have_are_not_repeated(tmp_path: Path) -> None:
    arguments = ['forty', '--results', str(tmp_path / 'results.jsonl')]
    first = run(*arguments, '--only', 'gcd', replies=[solution('gcd')], folder=tmp_path)
    second = run(*arguments, '--only', 'gcd,train', replies=[solution('train')], folder=tmp_path)
    assert first.returncode == second.returncode == 0
    assert [one.task for one in outcomes.read(tmp_path / 'results.jsonl')] == ['gcd', 'train']
    assert ' 2/2 ' in second.stdout


def test_the_bare_side_asks_once_and_reads_the_last_printed_line(tmp_path: Path) -> None:
    replies = ['Sure:\n```python\nprint("so:")\nprint("The answer is", 2480 * 17.5 / 100)\n```', 'It is 115.']
    done = run('forty', '--limit', '2', '--side', 'bare', replies=replies, folder=tmp_path)
    assert [line.split()[:3] for line in done.stdout.splitlines()[1:3]] == [
        ['ok', 'bare', 'percent'],
        ['FAIL', 'bare', 'power-digits'],
    ]
    assert 'no code block' in done.stdout


@pytest.mark.parametrize(
    ('arguments', 'complaint'),
    [
        (['fifty'], "no set is named 'fifty'; the sets are forty, held-out, gsm8k, mbpp"),
        (['held-out', '--only', 'gcd'], "no task or category is named 'gcd'"),
        (['forty', '--only', ' , '], "no task or category is named ''"),
        (['--limit', '0'], '--limit must be 1 or more'),
        (['--offset', '-1'], '--offset 0 or more'),
        (['gsm8k', '--data', '.'], 'there is no gsm8k*.jsonl in .'),
        (['forty', '--side', 'smolagents'], 'has no weights to start a server with; give the server of a model with'),
        (['forty', '--url', 'http://127.0.0.1:9/v1'], 'no model server answers at http://127.0.0.1:9/v1'),
    ],
)
def test_what_cannot_be_tried_is_one_line_and_exit_code_2(
    tmp_path: Path,
    arguments: list[str],
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, 'argv', ['evals', *arguments, '--model', write_script(tmp_path, [])])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith('evals: ')
    assert complaint in line


# Selection ------------------------------------------------------------------------------------------------------------


def test_without_a_folder_public_sets_are_skipped_with_one_line_each() -> None:
    said: list[str] = []
    tasks = select_tasks(parse_arguments([]), said.append)
    assert {task.set for task in tasks} == {'forty', 'held-out'}
    assert said == [f'{name}: skipped; give the folder with its data: --data FOLDER' for name in ('gsm8k', 'mbpp')]


def test_limit_and_offset_count_in_each_set(public_data: Path) -> None:
    chosen = selected('--limit', '1', '--offset', '1', '--data', str(public_data))
    assert chosen == ['power-digits', 'squares', 'gsm8k-2', 'mbpp-12']


def test_tasks_and_categories_can_be_chosen() -> None:
    assert selected('forty', '--only', 'gcd, sorting') == [
        'gcd',
        'sort-length',
        'top-three',
        'sort-last-digit',
        'median',
    ]


def test_a_public_set_without_a_folder_cannot_be_loaded() -> None:
    assert SETS == ('forty', 'held-out', 'gsm8k', 'mbpp')
    with pytest.raises(MissingData, match='--data FOLDER'):
        load_set('mbpp')


# smolagents -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A program in place of the Python that has smolagents."""
    python = tmp_path / 'python'
    python.write_text(STAND_IN.format(python=sys.executable), encoding='utf-8')
    python.chmod(0o755)
    return python


async def solve_with(python: Path, url: str, results: Path) -> None:
    arguments = ['forty', '--only', 'gcd', '--side', 'smolagents', '--python', str(python), '--url', url]
    await evaluate(parse_arguments([*arguments, '--results', str(results)]), print)


async def test_smolagents_gets_the_same_limits(stand_in: Path, tmp_path: Path, model_url: str) -> None:
    await solve_with(stand_in, model_url, tmp_path / 'results.jsonl')
    [outcome] = outcomes.read(tmp_path / 'results.jsonl')
    assert outcome.model == 'tiny.gguf'
    assert json.loads(outcome.answer) == {
        'set': 'forty',
        'task': 'gcd',
        'data': None,
        'url': model_url,
        'model': 'tiny.gguf',
        'steps': 8,
        'seconds': SECONDS,
        'max_tokens': 2048,
    }


async def test_a_python_without_smolagents_is_named(stand_in: Path, tmp_path: Path, model_url: str) -> None:
    stand_in.write_text('#!/bin/sh\necho "ModuleNotFoundError: No module named \'smolagents\'" >&2\nexit 1\n')
    with pytest.raises(UsageError, match=r"No module named 'smolagents'\. Name a Python that has it: --python"):
        await solve_with(stand_in, model_url, tmp_path / 'results.jsonl')


async def test_a_python_that_does_not_exist_is_named(tmp_path: Path, model_url: str) -> None:
    with pytest.raises(UsageError, match='nowhere cannot be started: No such file'):
        await solve_with(tmp_path / 'nowhere', model_url, tmp_path / 'results.jsonl')


def test_a_tool_for_smolagents_names_its_arguments_and_does_the_same() -> None:
    copy = documented(exchange_rate)
    assert copy.__doc__ is not None
    assert copy.__doc__.endswith('\n\nArgs:\n    source: The source.\n    target: The target.')
    assert copy('EUR', 'USD') == exchange_rate('EUR', 'USD')
    assert exchange_rate.__doc__ is not None
    assert 'Args:' not in exchange_rate.__doc__
