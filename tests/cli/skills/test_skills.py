"""`habilis skills`, and skills in `habilis run` and in the chat."""

import json
import os
import shutil
from pathlib import Path

import pytest
from skills_ref import validate  # pyright: ignore[reportMissingTypeStubs]

from habilis.core.folders import cache_folder
from tests.cli.chat import code, script
from tests.cli.process import habilis
from tests.place import Place

CORPUS = Path(__file__).parents[2] / 'tools' / 'skills' / 'corpus'
SCRIPT = "run_script('/skills/column-total/scripts/total.py', 'sales.csv', 'amount')"

USE = """
import sys
sys.path.append('/skills/twice/scripts')
from tool import twice
final_answer(twice(4))
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The cache is the usual one: building an interpreter takes too long for a test."""
    cache = cache_folder()
    here = Place(tmp_path, monkeypatch)
    monkeypatch.setenv('HABILIS_CACHE', os.fspath(cache))
    (here.folder / 'sales.csv').write_text('day;amount\nMon;1.200,50\nTue;3,25\n')
    return here


def skills(*arguments: str, code: int = 0) -> str:
    done = habilis('skills', *arguments)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_skills_are_made_checked_added_shown_exported_and_deleted(place: Place) -> None:
    assert skills('new', 'Brand Voice', '--description', 'How our texts sound.') == '.skills/brand-voice\n'
    assert skills('validate', '.skills/brand-voice') == '.skills/brand-voice: valid\n'
    assert validate(place.folder / '.skills' / 'brand-voice') == []
    own = place.config / 'habilis' / 'skills' / 'loud-name'
    assert skills('add', str(CORPUS / 'lenient' / 'Loud_Name')) == f'{own}\n'
    assert 'exists already' in habilis('skills', 'add', str(CORPUS / 'lenient' / 'Loud_Name')).stderr
    found = json.loads(skills('list', '--json'))
    assert [(skill['name'], skill['description']) for skill in found['skills']] == [
        ('brand-voice', 'How our texts sound.'),
        ('loud-name', 'Its name has upper case and a space, and so has its folder.'),
    ]
    assert 'brand-voice  ' in skills('list')
    assert '# brand-voice' in skills('show', 'brand-voice')
    assert json.loads(skills('show', 'loud-name', '--json'))['source'] == str(own)
    shutil.make_archive('pack', 'zip', CORPUS / 'valid')
    assert skills('export', 'pack.zip', 'loud-name', 'out').splitlines() == [
        f'out/{name}' for name in ('column-total', 'folded-text', 'größe', 'plain', 'loud-name')
    ]
    assert [error for folder in (place.folder / 'out').iterdir() for error in validate(folder)] == []
    assert skills('rm', 'loud-name', '--yes') == ''
    assert 'you have no skill loud-name' in habilis('skills', 'rm', 'loud-name', '--yes').stderr


def test_validate_is_strict_and_says_why(place: Place) -> None:
    done = habilis('skills', 'validate', str(CORPUS / 'lenient' / 'more-fields'), str(CORPUS / 'refused' / 'bomb'))
    assert done.returncode == 1
    assert 'unknown fields: model, user_invocable; put them into metadata' in done.stdout
    assert 'is refused: its front matter is broken: it has anchors' in done.stdout
    assert json.loads(skills('validate', str(CORPUS / 'valid'), '--json', code=0)).values()


def test_a_run_finds_the_skills_of_the_shared_folder_and_resumes_with_them(place: Place) -> None:
    shutil.copytree(CORPUS / 'valid' / 'column-total', place.folder / '.skills' / 'column-total')
    shutil.copytree(CORPUS / 'refused' / 'bomb', place.folder / '.skills' / 'bomb')
    model = script(place.folder, code(SCRIPT), code(SCRIPT), code('final_answer("fine")'))
    done = habilis('run', 'Total?', '-w', '.', '-m', model, '--max-steps', '1', '--run-id', 'run-1')
    assert done.returncode == 3, done.stderr
    assert 'habilis: skills: column-total\n' in done.stderr
    assert 'habilis: left out: the skill ' in done.stderr
    assert '\n1203.75\n' in done.stderr
    script_file = place.folder / '.skills' / 'column-total' / 'scripts' / 'table.py'
    before = script_file.read_text()
    script_file.write_text(before + '\n# changed\n')
    done = habilis('runs', 'resume', 'run-1', '--max-steps', '5')
    assert (done.returncode, done.stdout) == (1, '')
    assert 'the skill column-total has changed since the run was started' in done.stderr
    script_file.write_text(before)
    assert habilis('runs', 'resume', 'run-1', '-q', '--max-steps', '5').stdout == 'fine\n'


def test_skills_are_named_by_path_and_switched_off(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    model = script(place.folder, code('import os\nx = os.listdir("/skills")'), code('final_answer(x)'))
    options = ('-m', model, '--skills', os.path.relpath(CORPUS / 'valid' / 'plain'))
    done = habilis('run', 'Go', *options, '--max-steps', '1', '--run-id', 'run-1')
    assert done.returncode == 3, done.stderr
    elsewhere = place.folder / 'elsewhere'
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert habilis('runs', 'resume', 'run-1', '-q', '--max-steps', '5').stdout == "['plain']\n"
    assert 'no such skill' in habilis('run', 'Go', '-m', model, '--skills', 'missing').stderr
    skills('new', 'mine')
    off = script(place.folder, code('import os\nfinal_answer(os.path.exists("/skills"))'))
    assert habilis('run', 'Go', '-q', '-w', '.', '-m', off, '--skills', 'off').stdout == 'False\n'


def test_a_chat_has_the_skills_of_its_folder(place: Place) -> None:
    skills('new', 'mine', '--description', 'Mine alone.')
    model = script(place.folder, code("final_answer(open('/skills/mine/SKILL.md').read())"))
    done = habilis('chat', '-w', '.', '-m', model, stdin='What is mine?\n')
    assert 'skills: mine' in done.stdout + done.stderr
    assert 'Mine alone.' in done.stdout


def test_a_tool_is_exported_as_a_skill_and_imported_again(place: Place) -> None:
    (place.folder / 'twice.py').write_text('def twice(n: int) -> int:\n    """Twice a number."""\n    return 2 * n\n')
    tests = 'from tool import twice\n\n\ndef test_three():\n    assert twice(3) == 6\n'
    (place.folder / 'test_twice.py').write_text(tests)
    done = habilis('tools', 'add', 'twice.py', '--note', 'small')
    assert done.returncode == 0, done.stderr
    assert habilis('tools', 'export', '--skill', 'twice', 'out').stdout == 'out/twice\n'
    assert skills('validate', 'out/twice') == 'out/twice: valid\n'
    done = habilis('tools', 'import', 'out/twice', '--library', 'other')
    assert (done.returncode, done.stdout) == (0, 'twice\n'), done.stderr
    model = script(
        place.folder,
        code(USE),
    )
    assert habilis('run', 'Go', '-q', '-m', model, '--skills', 'out').stdout == '8\n'
