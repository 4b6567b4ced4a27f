"""The benchmark of very many tools. The speed itself is not tested here."""

import json
from typing import Any

import pytest

from benchmarks.mcp.queries import QUERIES
from benchmarks.mcp.sample_tools import same_name, toolsets
from tests.benchmarks.process import benchmarks

COUNTED = {f'{kind}_{count}' for kind in ('prompt', 'schemas') for count in (10, 100, 1000)}


@pytest.mark.slow
def test_a_quick_run_has_every_number() -> None:
    done = benchmarks('mcp', '--quick', '--json')
    assert done.returncode == 0, done.stderr
    rows: dict[str, Any] = {row['key']: row for row in json.loads(done.stdout)['rows']}
    timed = {'stubs', 'index', 'search', 'top', 'named', 'bare_call', 'call_overhead', 'listing'}
    assert rows.keys() == COUNTED | timed
    assert rows['prompt_1000']['met'] is True
    assert rows['prompt_1000']['value'] * 50 < rows['schemas_1000']['value']
    assert rows['top']['value'] >= 25, 'searches found 28 of 40 when this was written'
    assert rows['bare_call']['value'] > 0


def test_the_tools_are_always_the_same_and_have_those_that_are_searched_for() -> None:
    names = [tool.name for toolset in toolsets(1000) for tool in toolset.tools]
    assert names == [tool.name for toolset in toolsets(1000) for tool in toolset.tools]
    assert len({*names}) == 1000
    assert [right for right in QUERIES.values() if not any(same_name(right, name) for name in names)] == []
