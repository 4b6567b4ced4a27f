"""The report as tables: drawn by rich on a terminal, align_runs text elsewhere."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.report import Pair, PeerRow, Report, Row

MARKS = {True: '✓', False: '✗', None: ''}
_SPACED_UNITS = frozenset({'ms', 's', 'MB', 'GB'})


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells of text under headings."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(report: Report) -> list[Table]:
    """The numbers of Habilis, then the comparison with peers if any was measured."""
    measured = [peer for peer in report.peers if not peer.unavailable]
    effort = 'quick' if report.quick else 'full'
    machine = f'Python {report.python}, {report.machine}, {report.cores} cores, {effort} run'
    compared = any(row.comparison for row in report.rows)
    more_headings = ('peer, interleaved', 'Habilis is') if compared else ()
    ours = Table(
        title=f'Habilis {report.version} ({machine})',
        headings=('measurement', 'result', 'quartiles', 'target', '', *more_headings),
        rows=tuple((*_row(row), *(_comparison(row) if compared else ())) for row in report.rows),
    )
    peers = Table(
        title='Peers, interleaved in the same run',
        headings=('peer', 'new + first result', 'later cell', 'new per second', 'isolation'),
        rows=tuple(_peer(peer) for peer in measured),
    )
    return [ours, peers] if measured else [ours]


def footer(report: Report) -> list[str]:
    """What was not measured, and which targets were missed."""
    lines = [f'not measured: {peer.peer}: {peer.unavailable}' for peer in report.peers if peer.unavailable]
    lines += [f'not measured: {row.label}: {row.note}' for row in report.rows if row.value is None]
    if report.busy:
        lines.append(f'the machine was busy (load {report.load:.1f} on {report.cores} cores), so times are too long')
    missed = [row.label for row in report.rows if row.met is False]
    return [*lines, f'targets missed: {"; ".join(missed)}' if missed else 'all targets met']


def _row(row: Row) -> tuple[str, ...]:
    if row.value is None:
        return row.label, 'not measured', '', '', ''
    note = f' ({row.note})' if row.note else ''
    spread = f'{format_number(row.spread.low)} … {format_number(row.spread.high)}' if row.spread else ''
    target = ''
    if row.target is not None:
        sign = '≤' if row.target.sense == 'at most' else '≥'
        target = f'{sign} {_with_unit(f"{row.target.bound:g}", row.unit)}'
    return row.label, _with_unit(format_number(row.value), row.unit) + note, spread, target, MARKS[row.met]


def _comparison(row: Row) -> tuple[str, str]:
    if row.comparison is None:
        return '', ''
    pair = row.comparison.pair
    return f'{row.comparison.peer}: {_times(pair)}', format_ratio(pair.ratio)


def _with_unit(text: str, unit: str) -> str:
    return f'{text} {unit}' if unit in _SPACED_UNITS else f'{text}{unit}'


def _peer(peer: PeerRow) -> tuple[str, ...]:
    new, later = [
        f'{_times(pair)}: {format_ratio(pair.ratio)}' if pair else 'keeps no state' for pair in (peer.new, peer.later)
    ]
    return peer.peer, new, later, _rates(peer.rate), peer.isolation


def _times(pair: Pair) -> str:
    return f'{format_number(1e3 * pair.peer.median)} ms, ours {format_number(1e3 * pair.ours.median)}'


def _rates(pair: Pair | None) -> str:
    if pair is None:
        return ''
    rates = f'{format_number(pair.peer.median)}/s, ours {format_number(pair.ours.median)}'
    return f'{rates}: {format_ratio(1 / pair.ratio)}'


def format_ratio(ratio: float) -> str:
    """`4× faster` or `2× slower`."""
    return f'{ratio:.3g}× faster' if ratio >= 1 else f'{1 / ratio:.3g}× slower'


def format_number(value: float) -> str:
    """The number with three significant digits."""
    if value == int(value) or abs(value) >= 100:
        return f'{value:,.0f}'
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f'{value:.{digits}f}'


def format_report(report: Report) -> str:
    """The report as align_runs text."""
    parts = [f'{table.title}\n\n' + '\n'.join(_align([table.headings, *table.rows])) for table in tables(report)]
    return '\n\n'.join([*parts, '\n'.join(footer(report))])


def _align(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell + ' ' * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
        yield '  '.join(cells).rstrip()


def _width(text: str) -> int:
    """Columns on the screen; combining marks have none."""
    return sum(1 for character in text if not unicodedata.combining(character))


def draw_report(report: Report) -> None:
    """Draw the report on a terminal."""
    from rich import table as rich_table
    from rich.console import Console

    console = Console()
    colours = {'✓': '[green]✓[/]', '✗': '[red]✗[/]'}
    for table in tables(report):
        drawn = rich_table.Table(title=table.title, title_justify='left', title_style='bold')
        for heading in table.headings:
            drawn.add_column(heading)
        for row in table.rows:
            drawn.add_row(*(colours.get(cell, cell) for cell in row))
        console.print(drawn)
    for line in footer(report):
        console.print(line, markup=False, highlight=False)
