"""Which tools of the library worked together."""

import sqlite3
from pathlib import Path

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.library import usage
from habilis.forge.library.usage import Combination, UsageLog


@pytest.fixture
def log(tmp_path: Path) -> UsageLog:
    return UsageLog(tmp_path / '.usage.db')


def test_tools_that_worked_together_in_two_runs_are_a_combination(log: UsageLog) -> None:
    assert log.combinations() == []
    log.record_request('first', ['parse', 'sum'], ok=True)
    assert log.combinations() == []
    log.record_request('second', ['parse', 'parse', 'sum', 'parse'], ok=True)
    assert log.combinations() == [Combination(tools=('parse', 'sum'), tasks=('first', 'second'))]


def test_other_orders_failures_and_single_tools_do_not_count(log: UsageLog) -> None:
    log.record_request('a', ['parse', 'sum'], ok=True)
    log.record_request('b', ['sum', 'parse'], ok=True)
    log.record_request('c', ['parse', 'sum'], ok=False)
    for task in 'de':
        log.record_request(task, ['parse'], ok=True)
    assert log.combinations() == []


def test_a_run_counts_once_however_often_it_is_resumed(log: UsageLog) -> None:
    log.record_request('a', ['parse', 'sum'], ok=False, run='r1')
    log.record_request('a', ['parse', 'sum'], ok=True, run='r1')
    log.record_request('a', ['parse', 'sum'], ok=True, run='r1')
    assert log.combinations() == []
    assert [one.tasks for one in log.combinations(times=1)] == [('a',)]
    log.record_request('a', ['parse', 'sum'], ok=True, run='r2')
    assert len(log.combinations()) == 1


def test_only_the_newest_requests_are_kept(log: UsageLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, 'MAX_REQUESTS', 3)
    for number in range(5):
        log.record_request(str(number), ['parse', 'sum'], ok=True)
    assert log.combinations()[0].tasks == ('2', '3', '4')


def test_a_file_of_an_earlier_version_and_a_damaged_one(log: UsageLog, tmp_path: Path) -> None:
    path = tmp_path / '.usage.db'
    sqlite3.connect(path).execute('CREATE TABLE other (a)').connection.close()
    assert log.combinations() == []
    log.record_request('a', ['parse', 'sum'], ok=True)
    assert len(log.combinations(times=1)) == 1
    path.write_bytes(b'not a database' * 100)
    log.record_request('b', ['parse', 'sum'], ok=True)
    with pytest.raises(ForgeError, match='delete it'):
        log.combinations()
