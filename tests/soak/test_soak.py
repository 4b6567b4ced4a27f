"""The short form of the soak, and the check for growth."""

import random
from pathlib import Path

import pytest

from tests.crash.effects import FOLDER
from tests.soak.soak import KINDS, soak
from tests.soak.usage import Usage, growth


@pytest.mark.slow
async def test_every_run_ends_right_though_workers_are_killed_and_connections_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ('TMPDIR', FOLDER):  # the soak sets them for its workers
        monkeypatch.setenv(name, str(tmp_path))
    found = await soak(KINDS, seconds=10, runs=16, seed=random.SystemRandom().randrange(1 << 32), folder=tmp_path)
    assert [place.kind for place in found if place.done < 5] == []
    assert sum(place.kills for place in found) > 0


def _usage(kilobytes: int = 100_000, descriptors: int = 20, threads: int = 5, files: int = 3) -> Usage:
    return Usage(kilobytes=kilobytes, descriptors=descriptors, threads=threads, files=files)


def test_what_grows_is_named() -> None:
    assert growth([_usage()] * 40) == {}
    assert growth([_usage(kilobytes=50_000)] * 10 + [_usage()] * 30) == {}, 'a process warms up in the first quarter'
    assert growth([_usage(kilobytes=100_000 + 2_000 * number) for number in range(40)]) == {
        'kilobytes_per_descriptor': (6_450, 8_450)
    }
    assert growth([_usage(descriptors=20 + number) for number in range(100)]) == {'descriptors': (57, 107)}
    assert list(growth([_usage(threads=number, files=number) for number in range(100)])) == ['threads', 'files']
