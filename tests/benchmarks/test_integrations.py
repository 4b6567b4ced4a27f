"""The benchmark of the integrations measures what it says."""

import pytest

from benchmarks.integrations import suite
from benchmarks.integrations.executors import PAIRS


async def test_both_sides_of_each_framework_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, 'QUICK', suite.Effort(rounds=1, steps=1, loops=1, every=80))
    report = await suite.measure(quick=True, progress=lambda _: None)
    rows = {row.key: row for row in report.rows}
    for theirs, ours in PAIRS:
        if reason := theirs.unavailable():
            assert rows[theirs.key].note == reason
            continue
        for what in ('new', 'later', 'loop'):
            ratio = rows[f'{theirs.key}_{what}_ratio'].value
            assert ratio is not None
            assert ratio > 0
        assert (rows[f'{ours.key}_humaneval'].value, rows[f'{ours.key}_humaneval'].unit) == (3, '/3')
