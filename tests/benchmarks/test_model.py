"""Benchmark of the embedded model. The speed itself is not tested here."""

from pathlib import Path

import pytest

from benchmarks.model import suite
from habilis.core.errors import ModelError
from tests.benchmarks.process import benchmarks


def test_without_weights_it_says_how_to_get_them(tmp_path: Path) -> None:
    done = benchmarks('model', '--quick', env={'HABILIS_CACHE': str(tmp_path)})
    assert done.returncode == 1
    assert 'run `habilis models install' in done.stderr.splitlines()[-1]


async def test_both_builds_are_measured_cold_and_with_the_prompt_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = iter([1.0, 0.5, 4.0, 1.0])
    asked: list[str] = []

    async def engine(**_: object) -> Path:
        return tmp_path

    async def first_reply(engine: str, weights: Path, cache: str) -> float:
        asked.append(engine)
        assert (Path(cache) / 'engines').is_dir()
        return next(taken)

    (tmp_path / 'engines').mkdir()
    monkeypatch.setenv('HABILIS_CACHE', str(tmp_path))
    monkeypatch.setattr(suite, 'ensure_engine', engine)
    monkeypatch.setattr(suite, '_first_reply', first_reply)
    monkeypatch.setattr(suite.store, 'find', lambda _name: tmp_path / 'x.gguf')  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    report = await suite.measure(quick=True, progress=lambda _: None)
    assert asked == ['prebuilt', 'prebuilt', 'xllamacpp', 'xllamacpp']
    assert {row.key: row.value for row in report.rows} == {
        'cold': 1.0,
        'cold_ratio': 4.0,
        'cached': 0.5,
        'cached_ratio': 2.0,
    }
    assert report.missed == ['cached_ratio']


async def test_a_process_that_fails_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match='xllamacpp: '):
        await suite._first_reply('xllamacpp', tmp_path / 'no.gguf', str(tmp_path))  # pyright: ignore[reportPrivateUsage]
