"""What came of all tasks: per category, in all, as a table for people and as JSON for machines."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from evals.outcome import Outcome
from evals.tasks import Task

GOAL = 0.9
"""Of the tasks, to be solved by Habilis with the embedded model."""

Outcomes = Mapping[str, Sequence[Outcome]]
"""By framework, in the order of the tasks."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """Of one framework in some tasks."""

    solved: int
    total: int
    median: float
    """Seconds per task, like `mean`."""

    mean: float

    @property
    def rate(self) -> float:
        """From 0 to 1."""
        return self.solved / self.total


def score(outcomes: Sequence[Outcome]) -> Score:
    """At least one of them."""
    seconds = [outcome.seconds for outcome in outcomes]
    return Score(
        solved=sum(outcome.solved for outcome in outcomes),
        total=len(outcomes),
        median=statistics.median(seconds),
        mean=statistics.fmean(seconds),
    )


def line(who: str, task: Task, outcome: Outcome) -> str:
    """One outcome in one line."""
    mark = 'ok  ' if outcome.solved else 'FAIL'
    used = f'{outcome.seconds:7.1f} s {outcome.steps:2} steps {outcome.tokens:5} tokens'
    wanted = '' if outcome.solved else f', expected {task.expected!r}'
    return f'{mark} {who:<10} {task.id:<16} {used}  {_one_line(outcome.answer)}{wanted}'


def _one_line(text: str, longest: int = 100) -> str:
    text = ' '.join(text.split())
    return text if len(text) <= longest else f'{text[:longest]}…'


def table(tasks: Sequence[Task], outcomes: Outcomes) -> list[list[str]]:
    """Heading, a row for each category, the totals."""
    heading = ['category', *(f'{who}: {what}' for who in outcomes for what in ('solved', 'median', 'mean'))]
    rows = [heading]
    for category, members in groupby(tasks, key=lambda task: task.category):
        ids = {task.id for task in members}
        rows.append(
            [category, *_cells({who: [one for one in done if one.task in ids] for who, done in outcomes.items()})]
        )
    return [*rows, ['all', *_cells(outcomes)]]


def _cells(outcomes: Outcomes) -> list[str]:
    scores = [score(done) for done in outcomes.values()]
    return [
        cell for one in scores for cell in (f'{one.solved}/{one.total}', f'{one.median:.1f} s', f'{one.mean:.1f} s')
    ]


def plain(rows: Sequence[Sequence[str]]) -> str:
    """The table as aligned text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return '\n'.join('  '.join(map(str.ljust, row, widths)).rstrip() for row in rows)


def summary(outcomes: Outcomes) -> list[str]:
    """The totals in words."""
    return [
        f'{who}: {one.rate:.1%} solved ({one.solved} of {one.total}), {one.median:.1f} s per task in the median, '
        f'{one.mean:.1f} s on average'
        for who, done in outcomes.items()
        for one in [score(done)]
    ]


def markdown(title: str, tasks: Sequence[Task], outcomes: Outcomes) -> str:
    """The table, the totals and what failed, as a page."""
    heading, *rows = table(tasks, outcomes)
    lines = [f'# {title}', '', _row(heading), _row(['---'] * len(heading)), *map(_row, rows), '']
    lines += [f'- {sentence}' for sentence in summary(outcomes)]
    expected = {task.id: task.expected for task in tasks}
    failed = [(who, one) for who, done in outcomes.items() for one in done if not one.solved]
    if failed:
        lines += ['', _row(['not solved', 'by', 'answer', 'expected']), _row(['---'] * 4)]
        lines += [
            _row([one.task, who, f'`{_one_line(one.answer)}`', f'`{expected[one.task]!r}`']) for who, one in failed
        ]
    return '\n'.join([*lines, ''])


def _row(cells: Sequence[str]) -> str:
    return '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |'


def to_json(model: str, outcomes: Outcomes) -> dict[str, object]:
    """For machines."""
    return {
        'model': model,
        'goal': GOAL,
        'frameworks': {
            who: {
                **dataclasses.asdict(score(done)),
                'rate': score(done).rate,
                'outcomes': [dataclasses.asdict(one) for one in done],
            }
            for who, done in outcomes.items()
        },
    }
