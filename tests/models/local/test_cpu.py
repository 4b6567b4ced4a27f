"""One thread for each physical core that may be used."""

import os
from pathlib import Path

import pytest

from habilis.models.local.cpu import core_count, idle_cores


@pytest.fixture
def four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    def affinity(_: int) -> set[int]:
        return {0, 1, 2, 3}

    monkeypatch.setattr(os, 'sched_getaffinity', affinity, raising=False)


def topology(folder: Path, siblings: list[str]) -> Path:
    for cpu, text in enumerate(siblings):
        path = folder / f'cpu{cpu}' / 'topology'
        path.mkdir(parents=True)
        (path / 'thread_siblings_list').write_text(f'{text}\n')
    return folder


@pytest.mark.usefixtures('four_processors')
@pytest.mark.parametrize(
    ('siblings', 'count'), [(['0', '1', '2', '3'], 4), (['0,2', '1,3', '0,2', '1,3'], 2), (['0-3'] * 4, 1)]
)
def test_threads_of_one_core_count_once(tmp_path: Path, siblings: list[str], count: int) -> None:
    assert core_count(topology=topology(tmp_path, siblings), quota=tmp_path / 'none') == count


@pytest.mark.usefixtures('four_processors')
@pytest.mark.parametrize(
    ('quota', 'count'),
    [('200000 100000', 2), ('50000 100000', 1), ('max 100000', 4), ('900000 100000', 4), ('', 4), ('1 0', 4)],
)
def test_a_container_with_less_gets_less(tmp_path: Path, quota: str, count: int) -> None:
    limit = tmp_path / 'cpu.max'
    limit.write_text(quota)
    assert core_count(topology=topology(tmp_path, ['0', '1', '2', '3']), quota=limit) == count


def test_there_is_always_one(tmp_path: Path) -> None:
    assert core_count(topology=tmp_path, quota=tmp_path / 'none') >= 1


@pytest.mark.parametrize(
    ('load', 'idle'),
    [('0.10 0.20 0.30 1/136 20381', 4), ('0.1 0.2 0.3 3/136 2', 2), ('9 9 9 12/136 2', 1), ('unknown', 4)],
)
def test_cores_with_other_work_are_not_counted_as_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: str, idle: int
) -> None:
    monkeypatch.setattr(os, 'cpu_count', lambda: 4)
    (tmp_path / 'loadavg').write_text(load)
    assert idle_cores(load=tmp_path / 'loadavg') == idle


def test_without_a_load_all_cores_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, 'cpu_count', lambda: 4)
    assert idle_cores(load=tmp_path / 'missing') == 4
