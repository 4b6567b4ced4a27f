"""`habilis tools seed`, `add`, `edit`, `merge`, `rollback`, `rm`, `export`, `import` and `doctor`."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from habilis.forge.library.library import Library
from habilis.forge.library.seed_tools import seeds
from tests.cli.process import COMMAND, environment, habilis, on_terminal
from tests.cli.tools.conftest import Tools, data
from tests.forge.samples import double
from tests.requirements import require

ADDING = 'def double(number: int) -> int:\n    """Twice a number."""\n    return number + number\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / 'new.py'
    path.write_text(ADDING)
    return path


@pytest.mark.slow
def test_seeds_are_added_once_also_by_two_processes_at_once(tmp_path: Path) -> None:
    where = ('--library', str(tmp_path / 'library'))
    command = [*COMMAND, 'tools', 'seed', *where]
    both = [subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE) for _ in range(2)]
    assert [(one.communicate()[1].decode().count('Traceback'), one.returncode) for one in both] == [(0, 0), (0, 0)]
    library = Library(tmp_path / 'library')
    assert set(library.names()) == set(seeds())
    assert all(library.versions(name) == [1] for name in library.names())
    again = habilis('tools', 'seed', *where)
    assert (again.returncode, again.stdout) == (0, '')
    assert 'nothing changed' in again.stderr
    assert habilis('tools', 'run', 'percent_of', '15', '300', *where).stdout == '45.0\n'


def test_add_keeps_a_file_with_its_tests(tools: Tools, tmp_path: Path) -> None:
    file, tests = tmp_path / 'triple.py', tmp_path / 'test_triple.py'
    new = double('triple', factor=3)
    file.write_text(new.code)
    missing = tools('add', str(file))
    assert (missing.returncode, missing.stdout) == (1, '')
    assert f'write them to {tests}, or name their file with --tests FILE' in missing.stderr
    tests.write_text(new.tests.replace('from tool', 'from triple'))
    done = tools('add', str(file))
    assert done.stdout.startswith('triple: version 1 is in use; it passes 1 tests, which notice ')
    assert tools('run', 'triple', '10').stdout == '30\n'
    again = tools('add', str(file), '--tests', str(tests))
    assert (again.returncode, again.stdout) == (1, '')
    assert 'habilis tools edit triple FILE' in again.stderr


def test_edit_makes_a_version_and_rollback_restores_the_old_one(tools: Tools, tmp_path: Path) -> None:
    new = double(factor=3)
    (tmp_path / 'new.py').write_text(new.code)
    (tmp_path / 'tests.py').write_text(new.tests.replace('from tool', 'from new'))
    arguments = ('double', str(tmp_path / 'new.py'))
    assert 'got 9, expected 6' in tools('edit', *arguments).stderr
    assert tools('run', 'double', '10').stdout == '20\n'
    arguments = (*arguments, '--tests', str(tmp_path / 'tests.py'))
    refused = tools('edit', *arguments)
    assert refused.returncode == 1
    assert '--note' in refused.stderr
    done = tools('edit', *arguments, '--note', 'three is better')
    assert done.returncode == 0, done.stderr
    assert done.stdout == 'double: version 2 is in use; it passes 1 tests\n'
    assert 'fourfold keeps using the old version' in done.stderr
    assert tools('run', 'double', '10').stdout == '30\n'
    assert tools('run', 'fourfold', '10').stdout == '40\n'
    assert tools('rollback', 'double', '1').stdout == 'double: version 1 is in use, was 2\n'
    assert tools('run', 'double', '10').stdout == '20\n'
    assert tools('rollback', 'double', '9').stderr == 'habilis: double has no version 9; it has 1, 2\n'


def test_edit_tests_the_users_again(tools: Tools, file: Path) -> None:
    done = tools('edit', 'double', str(file), '--json')
    assert data(done)['users'] == [{'name': 'fourfold', 'version': 2, 'problem': ''}]
    again = tools('edit', 'double', str(file))
    assert (again.returncode, again.stderr) == (1, 'habilis: this is version 2 of double already\n')


@pytest.mark.parametrize('content', [None, b'\xff\xfe', b'def double(', b'x = 1', b''])
def test_edit_refuses_files_that_are_no_tool(tools: Tools, tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / 'bad.py').write_bytes(content)
    done = tools('edit', 'double', str(tmp_path / 'bad.py'))
    assert (done.returncode, done.stdout) == (1, '')
    assert 'unexpected' not in done.stderr


def test_merge_replaces_one_tool_by_another(tools: Tools, library: Library) -> None:
    library.add(double('twice'))
    done = tools('merge', 'twice', 'double')
    assert done.stdout == 'double was merged into twice, whose version 1 is in use\n'
    assert 'to undo it: habilis tools rollback double 1' in done.stderr
    assert 'fourfold uses the new version, as its version 2' in done.stderr
    assert tools('run', 'fourfold', '10').stdout == '40\n'
    gone = tools('show', 'double')
    assert (gone.returncode, gone.stdout) == (1, '')
    assert 'double was merged into twice' in gone.stderr
    assert tools('doctor').returncode == 0
    assert tools('rollback', 'double', '1').returncode == 0
    assert tools('run', 'double', '10').stdout == '20\n'


def test_rm_refuses_what_is_used_and_deletes_in_order(tools: Tools, library: Library) -> None:
    done = tools('rm', 'double')
    assert (done.returncode, done.stderr) == (1, 'habilis: double is used by fourfold: delete these too, or none\n')
    assert tools('rm', 'double', 'fourfold').stdout == 'deleted fourfold\ndeleted double\n'
    assert library.names() == []


def test_rm_asks_on_a_terminal(library: Library) -> None:
    with on_terminal('tools', 'rm', 'fourfold', '--library', str(library.folder)) as terminal:
        terminal.wait_for('Delete fourfold with all versions?')
        terminal.type('n\n')
        terminal.wait_for('nothing deleted')
    assert 'fourfold' in library.names()


def test_export_and_import(tools: Tools, tmp_path: Path) -> None:
    path, other = tmp_path / 'x.zip', ('--library', str(tmp_path / 'other'))
    assert tools('export', 'fourfold', str(path)).stdout == f'{path}\n'
    done = habilis('tools', 'import', str(path), *other)
    assert (done.returncode, sorted(done.stdout.split())) == (0, ['double', 'fourfold'])
    assert habilis('tools', 'test', *other).returncode == 0
    again = habilis('tools', 'import', str(path), *other)
    assert (again.returncode, again.stdout) == (0, '')
    assert 'in the library already' in again.stderr


def test_a_signed_file_is_imported_by_those_who_trust_its_key(tools: Tools, tmp_path: Path) -> None:
    require('ssh-keygen')
    key, path, other = tmp_path / 'key', str(tmp_path / 'x.zip'), ('--library', str(tmp_path / 'other'))
    subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', key], check=True)
    assert f'signed with {key}' in tools('export', 'double', path, '--sign', str(key)).stderr
    done = habilis('tools', 'import', path, '--trust', f'{key}.pub', *other)
    assert (done.returncode, done.stdout) == (0, 'double\n')
    assert f', a key of {key}.pub' in done.stderr
    assert 'to accept only keys that you trust: --trust PUBKEY' in habilis('tools', 'import', path, *other).stderr
    tools('export', 'double', path)
    assert 'the file is unsigned' in habilis('tools', 'import', path, *other).stderr
    assert habilis('tools', 'import', path, '--trust', f'{key}.pub', *other).returncode == 1
    assert tools('export', '--skill', 'double', 'x', '--sign', str(key)).returncode == 2


def test_a_hostile_file_changes_nothing(tools: Tools, library: Library, tmp_path: Path) -> None:
    path = tmp_path / 'evil.zip'
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('../../evil', 'x')
    done = tools('import', str(path))
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr == f"habilis: {path} is refused: unexpected entry '../../evil'\n"
    assert library.names() == ['double', 'fourfold']
    assert tools('import', str(tmp_path / 'missing.zip')).returncode == 1


def test_export_needs_names_and_a_zip_file(tools: Tools, tmp_path: Path) -> None:
    assert tools('export', 'double').returncode == 2
    assert tools('export', 'double', 'fourfold').returncode == 2
    assert tools('export', 'nope', str(tmp_path / 'x.zip')).returncode == 1
    assert not (tmp_path / 'x.zip').exists()


def test_export_as_a_skill(tools: Tools, tmp_path: Path) -> None:
    done = tools('export', '--skill', 'double', str(tmp_path / 'skills'))
    assert done.stdout == f'{tmp_path / "skills" / "double"}\n'
    assert (tmp_path / 'skills' / 'double' / 'SKILL.md').is_file()
    assert tools('export', '--skill', 'double', str(tmp_path / 'skills')).returncode == 1


def test_doctor_finds_and_fixes_an_edit(tools: Tools, library: Library) -> None:
    assert tools('doctor').returncode == 0
    (library.folder / 'double' / 'v1' / 'tool.py').write_text(ADDING)
    done = tools('doctor')
    assert (done.returncode, done.stderr) == (1, '')
    assert done.stdout.startswith('✗ double: version 1 was edited by hand → doctor --fix')
    assert data(tools('doctor', '--json'))['ok'] is False
    fixed = tools('doctor', '--fix')
    assert fixed.returncode == 0
    assert 'accepted the edits of double version 1' in fixed.stdout


def test_a_library_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    done = habilis('tools', 'seed', '--library', '/proc/nowhere/library')
    assert done.returncode == 1
    assert 'unexpected' not in done.stderr
    assert done.stderr.splitlines()[-1].startswith('habilis: cannot change the library /proc/nowhere/library: ')
