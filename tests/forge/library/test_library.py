"""The library: folders with versions, and an index that follows them."""

import json
import multiprocessing
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from habilis.core.errors import ForgeError, ToolExists, ToolNotFound
from habilis.forge.library.library import Library
from tests.forge.samples import double, fourfold


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / 'library')


def found(library: Library, query: str) -> list[str]:
    return [one.name for one in library.search(query)]


def test_a_library_that_does_not_exist_is_empty(library: Library) -> None:
    assert (library.names(), found(library, 'anything'), library.indexed(), library.usage.read()) == ([], [], {}, [])
    assert library.rebuild_index() == 0
    assert not library.folder.exists()


def test_a_tool_is_readable_files(library: Library) -> None:
    made = library.add(double(), origin='user', tests=1)
    folder = library.folder / 'double' / 'v1'
    assert sorted(os.listdir(folder)) == ['test_tool.py', 'tool.json', 'tool.py']
    assert (folder / 'tool.py').read_text() == double().code
    assert json.loads((folder / 'tool.json').read_text())['origin'] == 'user'
    assert (library.folder / 'double' / 'current').read_text() == '1\n'
    assert library.manifest('double') == made
    assert library.candidate('double') == double()
    assert [name in library for name in ('double', 'other', '../library/double', '')] == [True, False, False, False]


def test_another_process_sees_the_tool(library: Library) -> None:
    library.add(double())
    other = Library(library.folder)
    assert other.names() == found(other, 'twice a number') == ['double']


def test_a_tool_never_replaces_another_by_accident(library: Library) -> None:
    library.add(double())
    with pytest.raises(ToolExists, match='already a tool'):
        library.add(double(factor=3))
    assert library.candidate('double') == double()


def test_versions_and_rollback(library: Library) -> None:
    library.add(double())
    library.add(double(factor=3, summary='Three times.'), replaces=True, note='more')
    assert library.versions('double') == [1, 2]
    assert (library.current('double'), library.manifest('double').note) == (2, 'more')
    assert found(library, 'three times') == ['double']
    library.use_version('double', 1)
    assert library.candidate('double') == double()
    assert found(library, 'three times') == []
    with pytest.raises(ToolNotFound, match='no version 9; it has 1, 2'):
        library.use_version('double', 9)
    assert library.current('double') == 1


@pytest.mark.parametrize('name', ['../x', 'json', '', '.', '..', 'a/b', '/etc', 'double\0', '.index.db'])
def test_a_hostile_name_reaches_no_file(library: Library, name: str) -> None:
    library.add(double())
    for action in (library.current, library.manifest, library.candidate, library.versions, library.remove):
        with pytest.raises(ToolNotFound):
            action(name)
    assert library.names() == ['double']


def test_a_tool_that_is_missing_is_named_with_one_that_is_near(library: Library) -> None:
    library.add(double(summary='Twice a number.'))
    with pytest.raises(ToolNotFound, match=r"there is no tool 'double_number' in .*; did you mean 'double'"):
        library.current('double_number')


def test_dependencies_are_recorded_with_versions_and_stay_as_they_were_tested(library: Library) -> None:
    library.add(double())
    library.add(fourfold())
    library.add(double(factor=3), replaces=True)
    assert library.manifest('fourfold').uses == {'double': 1}
    assert library.candidate('fourfold').uses == {'double': double()}


def test_what_is_used_is_not_deleted(library: Library) -> None:
    library.add(double())
    library.add(fourfold())
    with pytest.raises(ForgeError, match='double is used by fourfold'):
        library.remove('double')
    library.remove('fourfold')
    library.remove('double')
    assert library.names() == found(library, 'number') == []


def test_missing_dependencies_and_cycles_are_refused(library: Library) -> None:
    with pytest.raises(ToolNotFound, match="no tool 'double'"):
        library.add(fourfold())
    library.add(double())
    library.add(fourfold())
    circular = replace(double(), code=f'from library import fourfold\n{double().code}')
    with pytest.raises(ForgeError, match='would use itself'):
        library.add(circular, replaces=True)
    assert library.versions('double') == [1]


def test_a_cycle_made_by_hand_is_an_error_and_no_endless_loop(library: Library) -> None:
    library.add(double())
    path = library.folder / 'double' / 'v1' / 'tool.json'
    path.write_text(json.dumps({**json.loads(path.read_text()), 'uses': {'double': 1}}))
    with pytest.raises(ForgeError, match='uses itself'):
        library.candidate('double')


def test_a_package_that_is_a_path_never_reaches_a_sandbox(library: Library) -> None:
    with pytest.raises(ForgeError, match="needs '/etc', which is not the name of a package"):
        library.add(replace(double(), packages=('/etc',)))
    library.add(replace(double(), packages=('attrs>=25',)))
    path = library.folder / 'double' / 'v1' / 'tool.json'
    path.write_text(path.read_text().replace('attrs>=25', '/etc'))
    with pytest.raises(ForgeError, match='not the name of a package'):
        library.candidate('double')


def test_what_is_deleted_by_hand_disappears_from_search(library: Library) -> None:
    for name in ('double', 'second', 'third'):
        library.add(double(name))
    shutil.rmtree(library.folder / 'double')
    (library.folder / 'second' / 'v1' / 'tool.py').unlink()
    assert found(library, 'twice a number') == ['third']


def test_what_is_copied_by_hand_appears_in_search(library: Library, tmp_path: Path) -> None:
    library.add(double())
    other = Library(tmp_path / 'other')
    other.add(double('second'))
    assert found(library, 'twice') == ['double']
    shutil.copytree(other.folder / 'second', library.folder / 'second')
    assert found(library, 'twice') == ['double', 'second']


@pytest.mark.parametrize('damage', [b'', b'not a database' * 500])
def test_a_lost_or_damaged_index_is_made_anew(library: Library, damage: bytes) -> None:
    library.add(double())
    for path in library.folder.glob('.index.db*'):
        path.unlink()
    (library.folder / '.index.db').write_bytes(damage)
    assert found(Library(library.folder), 'twice') == ['double']


def test_an_index_that_is_damaged_inside_is_made_anew(library: Library) -> None:
    library.add(double())
    path = library.folder / '.index.db'
    other = Library(library.folder)
    other.rebuild_index()
    data = bytearray(path.read_bytes())
    data[4096:] = b'\xff' * len(data[4096:])
    for stale in library.folder.glob('.index.db-*'):
        stale.unlink()
    path.write_bytes(data)
    assert found(Library(library.folder), 'twice') == ['double']


def test_edits_by_hand_are_noticed(library: Library) -> None:
    library.add(double())
    assert not library.is_edited('double')
    (library.folder / 'double' / 'v1' / 'tool.py').write_text(double(factor=3).code)
    assert library.is_edited('double')
    library.accept_edits('double', 1)
    assert not library.is_edited('double')


@pytest.mark.parametrize('data', [b'', b'{}', b'\xff', b'{"name": "double", "version": "one"}', b'[' * 100_000])
def test_a_damaged_manifest_is_named_and_other_tools_work(library: Library, data: bytes) -> None:
    library.add(double())
    library.add(double('second'))
    (library.folder / 'double' / 'v1' / 'tool.json').write_bytes(data)
    fresh = Library(library.folder)
    with pytest.raises(ForgeError, match=r'v1/tool\.json cannot be read'):
        fresh.manifest('double')
    fresh.rebuild_index()
    assert found(fresh, 'twice') == ['second']
    fresh.remove('second')
    fresh.remove('double')
    assert fresh.names() == []


def test_a_pipe_in_place_of_a_file_blocks_nothing(library: Library) -> None:
    library.add(double())
    library.add(fourfold())
    for file in ('tool.json', 'tool.py', '../current'):
        path = library.folder / 'fourfold' / 'v1' / file
        original = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        fresh = Library(library.folder)
        fresh.rebuild_index()
        assert found(fresh, 'twice a number') == ['double']
        with pytest.raises(ForgeError):
            fresh.candidate('fourfold')
        path.unlink()
        path.write_bytes(original)
    (library.folder / '.lock').unlink()
    os.mkfifo(library.folder / '.lock')
    Library(library.folder).add(double(factor=3), replaces=True)
    assert library.versions('double') == [1, 2]


def test_a_manifest_of_a_newer_habilis_is_refused(library: Library) -> None:
    library.add(double())
    path = library.folder / 'double' / 'v1' / 'tool.json'
    path.write_text(json.dumps({**json.loads(path.read_text()), 'format': 99}))
    with pytest.raises(ForgeError, match='newer Habilis'):
        library.manifest('double')


@pytest.mark.parametrize('text', ['', '9', '../../x', '-1', '1\n2'])
def test_a_damaged_current_says_what_to_write(library: Library, text: str) -> None:
    library.add(double())
    (library.folder / 'double' / 'current').write_text(text)
    with pytest.raises(ForgeError, match=r'write one of \[1\]'):
        library.current('double')


def test_after_a_writer_was_killed_the_tool_can_be_added_again(library: Library) -> None:
    library.add(double())
    (library.folder / 'double' / 'current').unlink()  # killed between the two renames
    (library.folder / '.new-abc').mkdir()
    assert library.names() == []
    assert library.add(double(factor=3)).version == 2
    assert library.remove_leftovers() == ['.new-abc']


def test_of_equal_tools_the_most_used_is_found_first(library: Library) -> None:
    library.add(double('first'))
    library.add(double('second'))
    assert found(library, 'twice a number') == ['first', 'second']
    library.usage.record('first', 1, ok=False, seconds=0.1)
    library.usage.record('first', 1, ok=False, seconds=0.1)
    library.usage.record('second', 1, ok=True, seconds=0.1)
    assert found(library, 'twice a number') == ['second', 'first']


def test_counting_a_call_does_not_make_the_index_look_old(library: Library) -> None:
    library.add(double())
    library.usage.record('double', 1, ok=True, seconds=0.1)
    found(library, 'twice a number')
    before = library.folder.stat().st_mtime_ns
    library.usage.record('double', 1, ok=True, seconds=0.1)
    Library(library.folder).search('twice a number')
    assert library.folder.stat().st_mtime_ns == before


def _use_read_only(folder: Path) -> None:
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    library = Library(folder)
    assert library.names() == found(library, 'twice a number') == ['double']
    library.usage.record('double', 1, ok=True, seconds=0.1)
    with pytest.raises(PermissionError):
        library.add(double('second'))


def test_a_read_only_library_can_be_searched() -> None:
    place = Path(tempfile.mkdtemp())  # other users cannot enter the folders of pytest
    place.chmod(0o755)
    library = Library(place / 'library')
    library.add(double())
    for path in library.folder.glob('.index.db*'):
        path.unlink()
    for folder in (library.folder, *(path for path in library.folder.rglob('*') if path.is_dir())):
        folder.chmod(0o555)
    reader = multiprocessing.get_context('fork').Process(target=_use_read_only, args=(library.folder,))
    reader.start()
    reader.join()
    for folder in (library.folder, *library.folder.rglob('*')):
        folder.chmod(0o755)
    shutil.rmtree(place)
    assert reader.exitcode == 0


def _add_many(folder: Path) -> None:
    library = Library(folder)
    for number in range(10):
        library.add(double('shared', factor=number + 2), replaces=True)


def test_two_processes_make_versions_without_losing_one(library: Library) -> None:
    context = multiprocessing.get_context('fork')
    writers = [context.Process(target=_add_many, args=(library.folder,)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert library.versions('shared') == list(range(1, 21))
