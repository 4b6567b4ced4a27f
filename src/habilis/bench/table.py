"""The report as a table: drawn by rich on a terminal, aligned text elsewhere."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from habilis.bench.report import Comparison, Pair, Report, Row

MARKS = {True: '✓', False: '✗', None: ''}
_UNITS_APART = frozenset({'ms', 's', 'MB', 'GB'})


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Cells of text under headings."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grids(report: Report) -> list[Grid]:
    """Ours, then ours beside the peers, if there are any."""
    measured = [peer for peer in report.peers if not peer.absent]
    effort = 'quick' if report.quick else 'full'
    machine = f'Python {report.python}, {report.machine}, {report.cores} cores, {effort} run'
    compared = any(row.beside for row in report.rows)
    ours = Grid(
        title=f'Habilis {report.version} ({machine})',
        headings=(
            'what',
            'measured',
            'quartiles',
            'target',
            '',
            *(('beside, in turns', 'ours is') if compared else ()),
        ),
        rows=tuple((*_row(row), *(_beside(row) if compared else ())) for row in report.rows),
    )
    theirs = Grid(
        title='Beside its peers, measured in turns in the same run',
        headings=('peer', 'new + first result', 'later cell', 'fresh per second', 'what keeps the code in'),
        rows=tuple(_peer(peer) for peer in measured),
    )
    return [ours, theirs] if measured else [ours]


def footer(report: Report) -> list[str]:
    """What could not be measured, and what was missed."""
    lines = [f'not measured: {peer.peer}: {peer.absent}' for peer in report.peers if peer.absent]
    lines += [f'not measured: {row.what}: {row.note}' for row in report.rows if row.value is None]
    if report.disturbed:
        lines.append(f'the machine was busy (load {report.load:.1f} on {report.cores} cores): times are longer for it')
    missed = [row.what for row in report.rows if row.met is False]
    return [*lines, f'targets missed: {"; ".join(missed)}' if missed else 'all targets met']


def _row(row: Row) -> tuple[str, ...]:
    if row.value is None:
        return row.what, 'not measured', '', '', ''
    note = f' ({row.note})' if row.note else ''
    spread = f'{number(row.spread.low)} … {number(row.spread.high)}' if row.spread else ''
    target = ''
    if row.target is not None:
        sign = '≤' if row.target.sense == 'at most' else '≥'
        target = f'{sign} {_with_unit(f"{row.target.bound:g}", row.unit)}'
    return row.what, _with_unit(number(row.value), row.unit) + note, spread, target, MARKS[row.met]


def _beside(row: Row) -> tuple[str, str]:
    if row.beside is None:
        return '', ''
    pair = row.beside.pair
    theirs, mine = number(1e3 * pair.peer.median), number(1e3 * pair.ours.median)
    return f'{row.beside.peer}: {theirs} ms, ours {mine}', faster(pair.ratio)


def _with_unit(text: str, unit: str) -> str:
    return f'{text} {unit}' if unit in _UNITS_APART else f'{text}{unit}'


def _peer(comparison: Comparison) -> tuple[str, ...]:
    return (
        comparison.peer,
        _times(comparison.new),
        _times(comparison.later),
        _rates(comparison.rate),
        comparison.isolation,
    )


def _times(pair: Pair | None) -> str:
    if pair is None:
        return 'keeps no state'
    theirs, mine = number(1e3 * pair.peer.median), number(1e3 * pair.ours.median)
    return f'{theirs} ms, ours {mine}: {faster(pair.ratio)}'


def _rates(pair: Pair | None) -> str:
    if pair is None:
        return ''
    return f'{number(pair.peer.median)}/s, ours {number(pair.ours.median)}: {faster(1 / pair.ratio)}'


def faster(ratio: float) -> str:
    """The speed of ours by theirs, in words."""
    return f'{ratio:.3g}× faster' if ratio >= 1 else f'{1 / ratio:.3g}× slower'


def number(value: float) -> str:
    """Three digits that matter."""
    if value == int(value) or abs(value) >= 100:
        return f'{value:,.0f}'
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f'{value:.{digits}f}'


def plain(report: Report) -> str:
    """Aligned text."""
    parts = [f'{grid.title}\n\n' + '\n'.join(_aligned([grid.headings, *grid.rows])) for grid in grids(report)]
    return '\n\n'.join([*parts, '\n'.join(footer(report))])


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell + ' ' * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
        yield '  '.join(cells).rstrip()


def _width(text: str) -> int:
    """Columns on the screen; a combining mark takes none."""
    return sum(1 for character in text if not unicodedata.combining(character))


def draw(report: Report) -> None:
    """On a terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    colours = {'✓': '[green]✓[/]', '✗': '[red]✗[/]'}
    for grid in grids(report):
        table = Table(title=grid.title, title_justify='left', title_style='bold')
        for heading in grid.headings:
            table.add_column(heading)
        for row in grid.rows:
            table.add_row(*(colours.get(cell, cell) for cell in row))
        console.print(table)
    for line in footer(report):
        console.print(line, markup=False, highlight=False)
