"""Row B15: usage and cost, per model and per agent, children summed, exportable."""

import csv
import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import HabilisError
from habilis.models.contract import Usage
from habilis.models.usage import MAX_ENTRIES, Ledger

COUNTS = st.integers(0, 10**9)
MONEY = st.none() | st.integers(0, 10**6).map(float)  # whole numbers, so that the order of a sum does not matter
USAGES = st.builds(
    Usage,
    requests=COUNTS,
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    cached_tokens=COUNTS,
    seconds=st.integers(0, 10**6).map(float),
    cost=MONEY,
)
CALLS = st.lists(st.tuples(st.sampled_from(['main', 'a', 'b', 'a/x']), st.sampled_from(['m:1', 'm:2']), USAGES))


def family() -> dict[str, Ledger]:
    main = Ledger('main')
    child = main.child('a')
    return {'main': main, 'a': child, 'b': main.child('b'), 'a/x': child.child('x')}


@given(CALLS)
def test_totals_equal_the_sums_of_what_was_recorded(calls: list[tuple[str, str, Usage]]) -> None:
    ledgers = family()
    for where, model, usage in calls:
        ledgers[where].record(model, usage)
    for name, ledger in ledgers.items():
        mine = [usage for where, _, usage in calls if name == 'main' or where.startswith(name)]
        assert ledger.total == sum(mine, Usage())
        assert sum(ledger.by_model().values(), Usage()) == ledger.total
        assert sum(ledger.by_agent().values(), Usage()) == ledger.total
        assert [entry.usage for entry in ledger.entries] == mine


def test_a_new_ledger_is_empty() -> None:
    ledger = Ledger()
    assert (ledger.total, ledger.by_model(), ledger.by_agent(), ledger.entries) == (Usage(), {}, {}, ())


def test_children_count_into_their_parent_and_not_the_other_way() -> None:
    ledgers = family()
    ledgers['main'].record('m:1', Usage(requests=1, input_tokens=10, cost=0.5))
    ledgers['a/x'].record('m:2', Usage(requests=1, input_tokens=5, cost=0.25))
    assert ledgers['a'].total == Usage(requests=1, input_tokens=5, cost=0.25)
    assert ledgers['b'].total == Usage()
    assert ledgers['main'].by_agent() == {
        'main': Usage(requests=1, input_tokens=10, cost=0.5),
        'x': Usage(requests=1, input_tokens=5, cost=0.25),
    }
    assert ledgers['main'].by_model()['m:2'].input_tokens == 5


def test_a_call_with_no_known_price_leaves_the_known_ones() -> None:
    ledger = Ledger()
    ledger.record('m:1', Usage(cost=0.5))
    ledger.record('m:2', Usage(cost=None))
    assert ledger.total.cost == 0.5
    assert ledger.by_model()['m:2'].cost is None


def test_agent_and_time_may_be_named() -> None:
    ledger = Ledger('main')
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    assert ledger.record('m:1', Usage(), agent='planner', at=moment).at == moment
    assert list(ledger.by_agent()) == ['planner']


def test_threads_lose_nothing() -> None:
    ledgers = family()

    def work(name: str) -> None:
        for _ in range(500):
            ledgers[name].record('m:1', Usage(requests=1, output_tokens=2))

    threads = [threading.Thread(target=work, args=(name,)) for name in ledgers for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledgers['main'].total == Usage(requests=4000, output_tokens=8000)
    assert len(ledgers['main'].entries) == 4000
    assert ledgers['a'].total.requests == 2000


def filled() -> Ledger:
    ledger = Ledger('main')
    ledger.record(
        'm:1', Usage(requests=1, input_tokens=10, seconds=1.5, cost=0.25), at=datetime(2024, 5, 1, tzinfo=UTC)
    )
    ledger.child('says "hi", twice\n').record('m:2', Usage(requests=1, output_tokens=7))
    return ledger


def test_it_is_exported_as_json(tmp_path: Path) -> None:
    path = tmp_path / 'new' / 'usage.JSON'
    ledger = filled()
    ledger.export(path)
    book = json.loads(path.read_text())
    assert book['total'] == {
        'requests': 2,
        'input_tokens': 10,
        'output_tokens': 7,
        'cached_tokens': 0,
        'seconds': 1.5,
        'cost': 0.25,
    }
    assert book['by_model']['m:2']['cost'] is None
    assert list(book['by_agent']) == ['main', 'says "hi", twice\n']
    assert book['entries'][0]['at'] == '2024-05-01T00:00:00+00:00'
    assert len(book['entries']) == 2


def test_it_is_exported_as_csv(tmp_path: Path) -> None:
    path = tmp_path / 'usage.csv'
    filled().export(str(path))
    with path.open(newline='') as file:
        rows = list(csv.DictReader(file))
    assert [row['agent'] for row in rows] == ['main', 'says "hi", twice\n']
    assert [row['cost'] for row in rows] == ['0.25', '']
    assert sum(int(row['output_tokens']) for row in rows) == 7


def test_an_empty_ledger_exports_its_columns(tmp_path: Path) -> None:
    Ledger().export(tmp_path / 'usage.csv')
    assert (tmp_path / 'usage.csv').read_text().startswith('at,agent,model,requests,')


@pytest.mark.parametrize('name', ['usage.xlsx', 'usage', '.json'])
def test_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(HabilisError, match=r'ends in \.json or \.csv'):
        filled().export(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_ledger_sums_all_calls_and_remembers_the_latest() -> None:
    ledger = Ledger()
    for number in range(MAX_ENTRIES + 2):
        ledger.record(f'm{number % 2}', Usage(requests=1))
    assert len(ledger.entries) == MAX_ENTRIES
    assert ledger.total.requests == MAX_ENTRIES + 2
    assert ledger.by_model() == {'m0': Usage(requests=MAX_ENTRIES // 2 + 1), 'm1': Usage(requests=MAX_ENTRIES // 2 + 1)}
