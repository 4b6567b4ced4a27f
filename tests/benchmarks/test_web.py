"""The benchmark of web pages. The speed itself is not tested here."""

import json

import pytest

from tests.benchmarks.process import benchmarks


@pytest.mark.slow
def test_a_quick_run_fetches_all_pages_and_finds_the_text_that_trafilatura_finds() -> None:
    done = benchmarks('web', '--quick', '--json')
    assert done.returncode == 0, done.stderr
    rows = {row['key']: row for row in json.loads(done.stdout)['rows']}
    assert rows['fetch']['value'] > 0
    assert rows['same']['value'] == 50
