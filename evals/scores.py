"""Rates with their intervals, times, and tables of them as aligned text."""

import math
import statistics
from collections.abc import Mapping, Sequence

from evals.outcomes import Outcome

HEADING = ('set', 'side', 'solved', 'rate', '95 % interval', 'median s', 'mean s', 'median tokens', 'median steps')


def wilson(solved: int, total: int, z: float = 1.959964) -> tuple[float, float]:
    """The Wilson score interval of a rate; 95 % unless `z` says otherwise."""
    rate = solved / total
    scale = 1 + z**2 / total
    centre = (rate + z**2 / (2 * total)) / scale
    margin = z / scale * math.sqrt(rate * (1 - rate) / total + z**2 / (4 * total**2))
    return max(0.0, centre - margin), min(1.0, centre + margin)


def table(sides: Mapping[str, Sequence[Outcome]]) -> str:
    """A row for each set and side."""
    names = dict.fromkeys(one.set for done in sides.values() for one in done)
    rows: list[Sequence[str]] = [HEADING]
    for name in names:
        for side, done in sides.items():
            if members := [one for one in done if one.set == name]:
                rows.append([name, side, *_cells(members)])
    return aligned(rows)


def line(outcome: Outcome) -> str:
    """One outcome in one line."""
    mark = 'ok  ' if outcome.solved else 'FAIL'
    used = f'{outcome.seconds:7.1f} s {outcome.steps:2} steps {outcome.tokens:5} tokens'
    return f'{mark} {outcome.side:<10} {outcome.task:<16} {used}  {_shortened(outcome.answer)}'


def _cells(outcomes: Sequence[Outcome]) -> list[str]:
    solved, total = sum(one.solved for one in outcomes), len(outcomes)
    low, high = wilson(solved, total)
    seconds = [one.seconds for one in outcomes]
    return [
        f'{solved}/{total}',
        f'{solved / total:.1%}',
        f'{low:.1%} – {high:.1%}',
        f'{statistics.median(seconds):.1f}',
        f'{statistics.fmean(seconds):.1f}',
        f'{statistics.median(one.tokens for one in outcomes):.0f}',
        f'{statistics.median(one.steps for one in outcomes):g}',
    ]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns of text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return '\n'.join('  '.join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _shortened(text: str, longest: int = 100) -> str:
    text = ' '.join(text.split())
    return text if len(text) <= longest else f'{text[:longest]}…'
