"""Scores of outcomes, and what one side loses to another."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from evals import outcomes, scores
from evals.compare import compare
from evals.outcomes import Outcome

ROOT = Path(__file__).parents[2]


def outcome(task: str, *, solved: bool = True, seconds: float = 1.0, answer: str = '42', set: str = 'forty') -> Outcome:
    return Outcome(
        set=set, task=task, side='habilis', solved=solved, answer=answer, seconds=seconds, steps=2, tokens=30
    )


SIDES = {
    'after': [
        outcome('gcd', seconds=1),
        outcome('train', seconds=5),
        outcome('median', solved=False),
        outcome('gsm8k-1', set='gsm8k'),
    ],
    'bare': [outcome('gcd', seconds=10), outcome('train', solved=False, seconds=4), outcome('median', seconds=4)],
}


@pytest.mark.parametrize(('solved', 'total'), [(24, 40), (1, 3), (39, 40)])
def test_the_interval_ends_where_the_rate_is_1_96_standard_errors_away(solved: int, total: int) -> None:
    low, high = scores.wilson(solved, total)
    assert low < solved / total < high
    for end in (low, high):
        assert abs(solved / total - end) / math.sqrt(end * (1 - end) / total) == pytest.approx(1.959964)


def test_the_interval_of_none_or_all_stays_between_0_and_1() -> None:
    assert scores.wilson(0, 10)[0] == 0
    assert scores.wilson(10, 10)[1] == pytest.approx(1)
    assert scores.wilson(10, 10)[1] <= 1
    assert scores.wilson(10, 10)[0] == pytest.approx(1 - scores.wilson(0, 10)[1])


def test_the_table_has_a_row_for_each_set_and_side() -> None:
    heading, *rows = scores.table(SIDES).splitlines()
    assert heading.split()[:4] == ['set', 'side', 'solved', 'rate']
    assert [row.split()[:4] for row in rows] == [
        ['forty', 'after', '2/3', '66.7%'],
        ['forty', 'bare', '2/3', '66.7%'],
        ['gsm8k', 'after', '1/1', '100.0%'],
    ]
    assert rows[1].split()[-4:] == ['4.0', '6.0', '30', '2']
    assert heading.index('solved') == rows[0].index('2/3')


def test_losses_and_gains_are_named() -> None:
    assert compare('after', SIDES).splitlines()[-3:] == [
        'after and bare: 3 tasks in common, 1 solved by both',
        '  losses, solved by bare only: 1: median',
        '  gains, solved by after only: 1: train',
    ]
    assert compare('after', {**SIDES, 'bare': SIDES['after']}).splitlines()[-2:] == [
        '  losses, solved by bare only: none',
        '  gains, solved by after only: none',
    ]


def test_a_long_answer_is_one_short_line() -> None:
    line = scores.line(outcome('percent', solved=False, answer='one\ntwo ' + 'x' * 500))
    assert '\n' not in line
    assert line.endswith('x…')


def test_the_command_compares_files_by_their_names(tmp_path: Path) -> None:
    for name, done in SIDES.items():
        for one in done:
            outcomes.append(tmp_path / f'{name}.jsonl', one)
    command = [sys.executable, '-m', 'evals.compare', *(str(tmp_path / f'{name}.jsonl') for name in SIDES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == compare('after', SIDES)


@pytest.mark.parametrize(
    ('names', 'complaint'), [(['a', 'missing'], 'no such file'), (['a', 'a'], 'need different names')]
)
def test_files_that_cannot_be_compared_are_a_usage_error(tmp_path: Path, names: list[str], complaint: str) -> None:
    outcomes.append(tmp_path / 'a.jsonl', outcome('gcd'))
    command = [sys.executable, '-m', 'evals.compare', *(str(tmp_path / f'{name}.jsonl') for name in names)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert complaint in done.stderr
