"""The benchmark of the memory measures what it says."""

from pathlib import Path

import pytest

from habilis.bench.memory import suite
from habilis.bench.memory.chat import chat_times


async def test_it_measures_search_append_and_separation(monkeypatch: pytest.MonkeyPatch) -> None:
    small = suite.Effort(memories=300, searches=5, appends=5, foreign_searches=20, chats=0)
    monkeypatch.setattr(suite, 'QUICK', small)
    said: list[str] = []
    report = await suite.measure(quick=True, progress=said.append)
    assert {row.key for row in report.rows} == {'search', 'append', 'context', 'foreign'}
    assert next(row.value for row in report.rows if row.key == 'foreign') == 0
    assert all(row.value is not None for row in report.rows)
    assert said[0] == 'filling a memory with 300 turns'


@pytest.mark.bench
async def test_the_chat_is_ready_soon_and_adds_little_to_the_first_word(tmp_path: Path) -> None:
    times = await chat_times(tmp_path, 3)
    assert times.ready.median < suite.READY_TARGET / 1e3
    assert times.adds.median < suite.FIRST_TOKEN_TARGET / 1e3
