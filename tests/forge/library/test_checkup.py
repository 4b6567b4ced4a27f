"""What the doctor of a library finds and repairs."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from habilis.forge.library.checkup import check_library, repair
from habilis.forge.library.library import Library
from tests.forge.samples import double, fourfold


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = Library(tmp_path / 'library')
    made.add(double())
    made.add(fourfold())
    return made


def problems(library: Library) -> list[tuple[str, str]]:
    return [(one.tool, one.what) for one in check_library(library)]


def test_a_sound_library_has_no_problems(library: Library, tmp_path: Path) -> None:
    assert problems(library) == []
    assert problems(Library(tmp_path / 'missing')) == []


async def test_leftovers_of_killed_writers_are_found_and_deleted(library: Library) -> None:
    (library.folder / '.new-abc').mkdir()
    assert problems(library) == [('', '.new-abc was left by a writer that was killed')]
    await repair(library)
    assert problems(library) == []


def test_a_folder_without_a_version_in_use_is_found(library: Library) -> None:
    (library.folder / 'fourfold' / 'current').unlink()
    assert problems(library) == [('fourfold', 'no version of it is in use, so it is not visible')]


async def test_edits_that_pass_their_tests_are_accepted(library: Library) -> None:
    path = library.folder / 'double' / 'v1' / 'tool.py'
    path.write_text(double().code.replace('number * 2', 'number + number').replace('Twice', 'Two times'))
    assert problems(library) == [('double', 'version 1 was edited by hand')]
    assert 'accepted the edits of double version 1, which pass its tests' in await repair(library)
    assert problems(library) == []
    assert library.manifest('double').summary == 'Two times a number.'
    assert [one.name for one in library.search('two times')][:1] == ['double']


async def test_edits_that_fail_their_tests_are_not_accepted(library: Library) -> None:
    (library.folder / 'double' / 'v1' / 'tool.py').write_text(double(factor=3).code)
    assert any('did not accept' in line and 'got 9, expected 6' in line for line in await repair(library))
    assert problems(library) == [('double', 'version 1 was edited by hand')]


def test_a_missing_dependency_is_found(library: Library) -> None:
    shutil.rmtree(library.folder / 'double')
    [(name, what)] = problems(library)
    assert name == 'fourfold'
    assert "version 1: there is no tool 'double'" in what


@pytest.mark.parametrize('file', ['tool.json', 'tool.py', 'test_tool.py'])
async def test_a_damaged_or_missing_file_is_named(library: Library, file: str) -> None:
    (library.folder / 'fourfold' / 'v1' / file).write_bytes(b'\xff\xff')
    assert ('fourfold') in {name for name, _ in problems(library)}
    (library.folder / 'fourfold' / 'v1' / file).unlink()
    await repair(library)
    assert any(name == 'fourfold' and file in what for name, what in problems(library))


def test_a_manifest_of_another_tool_is_found(library: Library) -> None:
    path = library.folder / 'double' / 'v1' / 'tool.json'
    path.write_text(json.dumps({**json.loads(path.read_text()), 'name': 'other'}))
    assert ('double', 'the manifest of version 1 is that of other version 1') in problems(library)


async def test_a_version_changed_by_hand_is_found_and_the_index_made_anew(library: Library) -> None:
    library.add(double(summary='Two of it.'), replaces=True)
    (library.folder / 'double' / 'current').write_text('1\n')
    assert problems(library) == [('double', 'the index has version 2, not 1')]
    assert 'made the index anew: 2 tools' in await repair(library)
    assert problems(library) == []


def test_a_folder_with_a_bad_name_is_found(library: Library) -> None:
    shutil.copytree(library.folder / 'double', library.folder / 'json')
    assert [name for name, _ in problems(library)] == ['json']


def test_a_damaged_usage_log_is_named(library: Library) -> None:
    (library.folder / '.usage.db').write_bytes(b'not a database' * 100)
    [(_, what)] = problems(library)
    assert 'delete it to count from zero' in what


def test_copies_and_tools_with_the_same_summary_are_advice(library: Library) -> None:
    library.add(double('twofold', summary='Other words for it.'))
    library.add(replace(double('second'), code=double('second').code.replace('number * 2', 'number + number')))
    found = check_library(library)
    assert [(one.tool, one.what, one.is_error) for one in found] == [
        ('second', 'its summary is nearly that of double', False),
        ('twofold', 'its code is that of double', False),
    ]


def test_tools_that_are_opposites_are_not_similar(library: Library) -> None:
    library.add(double('up', factor=5, summary='Degrees Fahrenheit of degrees Celsius.'))
    library.add(double('down', factor=6, summary='Degrees Celsius of degrees Fahrenheit.'))
    assert problems(library) == []
