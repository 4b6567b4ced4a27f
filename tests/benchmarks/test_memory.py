"""The benchmark of the memory measures what it says."""

import math
from pathlib import Path

import pytest

from benchmarks.memory import suite
from benchmarks.memory.chat import chat_times


async def test_it_measures_search_append_and_separation(monkeypatch: pytest.MonkeyPatch) -> None:
    small = suite.Effort(memories=300, searches=5, appends=5, foreign_searches=20, chats=0)
    monkeypatch.setattr(suite, 'QUICK', small)
    said: list[str] = []
    report = await suite.measure(quick=True, progress=said.append)
    assert {row.key for row in report.rows} == {'search', 'append', 'context', 'foreign'}
    assert next(row.value for row in report.rows if row.key == 'foreign') == 0
    assert all(row.value is not None for row in report.rows)
    assert said[0] == 'filling a memory with 300 turns'


async def test_the_start_and_the_first_word_of_a_chat_are_measured(tmp_path: Path) -> None:
    times = await chat_times(tmp_path, 1)
    assert times.ready.median > 0
    assert math.isfinite(times.adds.median)
