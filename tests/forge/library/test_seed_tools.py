"""The seeds are added once, and never replace anything."""

import asyncio
import multiprocessing
from pathlib import Path

import pytest

from habilis.forge.contract import Candidate
from habilis.forge.library import seed_tools as seeding
from habilis.forge.library.library import Library
from habilis.forge.library.seed_tools import seed, seeds
from tests.forge.samples import double, fourfold


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few seeds: all of them are tested elsewhere."""
    made: dict[str, Candidate] = {'double': double(), 'fourfold': fourfold(), 'treble': double('treble', factor=3)}
    monkeypatch.setattr(seeding, 'seeds', lambda: made)


def test_there_are_seeds_each_after_what_it_uses() -> None:
    made = seeds()
    assert len(made) >= 25
    names = list(made)
    assert all(names.index(used) < names.index(name) for name, one in made.items() for used in one.uses)


async def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    library = Library(tmp_path)
    first = await seed(library)
    assert (first.added, first.kept, first.failed) == (('double', 'fourfold', 'treble'), (), ())
    assert library.manifest('double').origin == 'seed'
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob('v*/*')}
    second = await seed(library)
    assert (second.added, second.kept) == ((), ('double', 'fourfold', 'treble'))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob('v*/*')} == before


async def test_a_tool_of_the_user_is_kept(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.add(double('treble', factor=30))
    report = await seed(library)
    assert (report.added, report.kept) == (('double', 'fourfold'), ('treble',))
    assert library.candidate('treble') == double('treble', factor=30)


async def test_a_seed_that_fails_is_not_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Candidate(name='wrong', code=double('wrong').code, tests=double('wrong', factor=3).tests)
    monkeypatch.setattr(seeding, 'seeds', lambda: {'wrong': wrong})
    report = await seed(Library(tmp_path))
    assert report.added == ()
    assert 'got 6, expected 9' in report.failed[0]


def _seed(folder: Path) -> None:
    asyncio.run(seed(Library(folder)))


def test_two_processes_at_once_end_as_one(tmp_path: Path) -> None:
    context = multiprocessing.get_context('fork')
    both = [context.Process(target=_seed, args=(tmp_path / 'library',)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    library = Library(tmp_path / 'library')
    assert [one.exitcode for one in both] == [0, 0]
    assert {name: library.versions(name) for name in library.names()} == {'double': [1], 'fourfold': [1], 'treble': [1]}
    assert library.remove_leftovers() == []


async def test_a_seed_that_was_merged_into_another_tool_stays_away(tmp_path: Path) -> None:
    library = Library(tmp_path)
    await seed(library)
    library.hide('treble', merged_into='double')
    again = await seed(library)
    assert (again.added, library.names()) == ((), ['double', 'fourfold'])
