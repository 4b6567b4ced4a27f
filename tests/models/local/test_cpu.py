"""One thread for each physical core that may be used."""

import os
from pathlib import Path

import pytest

from habilis.models.local.cpu import core_count


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
