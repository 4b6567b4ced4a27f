"""The benchmark of the server measures what it says. The speed itself is not tested here."""

import pytest

from benchmarks.server import suite
from tests.requirements import require


@pytest.mark.slow
async def test_it_measures_start_page_and_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    require('chromium')
    monkeypatch.setattr(suite, 'QUICK', suite.Effort(agents=3, streams=6, rounds=1, records=20, long=100))
    report = await suite.measure(quick=True, progress=lambda _: None)
    rows = {row.key: row for row in report.rows}
    assert rows.keys() == {'ready', 'ready_cpu', 'idle', 'first_view', 'late', 'drawn', 'drawn_cpu', 'added'}
    assert all(row.value is not None for row in report.rows)
    assert rows['first_view'].met is True
