"""Tools as Agent Skills."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from skills_ref import validate  # pyright: ignore[reportMissingTypeStubs]

from habilis.core.errors import ForgeError, SkillError
from habilis.forge.library.library import Library
from habilis.forge.sharing.skills import export_skill, tool_archive
from habilis.forge.sharing.transfer import collect, import_tools
from habilis.tools.skills.skill import skill_name
from habilis.tools.skills.sources import load_skills
from tests.forge.samples import double, fourfold

ODD = 'Uses "quotes": \\\\ backslashes, #marks, {braces}, é, 😀 and --- lines.'


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / 'library')


def run(folder: Path, code: str) -> str:
    done = subprocess.run([sys.executable, '-c', code], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize('summary', ['Twice a number.', ODD, 'x' * 3000, "It's: - a [list]"])
def test_the_folder_is_valid(library: Library, tmp_path: Path, summary: str) -> None:
    library.add(double('double_it', summary=summary))
    folder = export_skill(library, 'double_it', tmp_path / 'skills')
    assert folder == tmp_path / 'skills' / 'double-it'
    assert validate(folder) == []
    assert sorted(path.name for path in folder.rglob('*')) == [
        'SKILL.md',
        'assets',
        'scripts',
        'test_tool.py',
        'tool.py',
        'tools.zip',
    ]


def test_the_command_of_the_specification_accepts_it(library: Library, tmp_path: Path) -> None:
    library.add(double())
    folder = export_skill(library, 'double', tmp_path)
    command = Path(sys.executable).with_name('agentskills')
    done = subprocess.run([command, 'validate', folder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, '')


def test_the_scripts_work_with_what_they_use(library: Library, tmp_path: Path) -> None:
    library.add(double())
    library.add(fourfold())
    scripts = export_skill(library, 'fourfold', tmp_path / 'skills') / 'scripts'
    assert run(scripts, 'from tool import fourfold; print(fourfold(5))') == '20'
    assert run(scripts, 'import test_tool; test_tool.test_three(); print("ok")') == 'ok'


def test_tools_that_use_each_other_in_a_chain_work_too(library: Library, tmp_path: Path) -> None:
    library.add(double())
    library.add(fourfold())
    code = (
        'from library import double, fourfold\n\n\ndef eightfold(number: int) -> int:\n'
        '    """Eight times a number."""\n    return double(fourfold(number))\n'
    )
    library.add(replace(double('eightfold'), code=code))
    scripts = export_skill(library, 'eightfold', tmp_path / 'skills') / 'scripts'
    assert run(scripts, 'from tool import eightfold; print(eightfold(1))') == '8'


def test_a_folder_that_exists_is_not_changed(library: Library, tmp_path: Path) -> None:
    library.add(double())
    export_skill(library, 'double', tmp_path)
    with pytest.raises(SkillError, match='exists already'):
        export_skill(library, 'double', tmp_path)


@pytest.mark.parametrize(
    ('name', 'made'), [('a_b', 'a-b'), ('_x__Y9_', 'x-y9'), ('n' * 100, 'n' * 64), ('n' * 63 + '_x', 'n' * 63)]
)
def test_names_follow_the_specification(name: str, made: str) -> None:
    assert skill_name(name) == made


def test_a_name_without_letters_is_refused() -> None:
    with pytest.raises(SkillError, match='no letter or digit'):
        skill_name('__')


async def test_a_tool_comes_back_from_its_skill_without_loss(library: Library, tmp_path: Path) -> None:
    library.add(double())
    library.add(fourfold(), tags=('numbers',))
    folder = export_skill(library, 'fourfold', tmp_path / 'skills')
    [skill] = load_skills([folder])
    assert skill.problems == ()
    other = Library(tmp_path / 'other')
    report = await import_tools(other, tool_archive(folder))
    assert {made.name for made in report.added} == {'double', 'fourfold'}
    assert other.candidate('fourfold') == library.candidate('fourfold')
    assert other.manifest('fourfold').tags == ('numbers',)
    sources = ('tool.py', 'test_tool.py')
    ours, theirs = collect(library, ['fourfold']), collect(other, ['fourfold'])
    assert {(tool, file): ours[tool][file] for tool in ours for file in sources} == {
        (tool, file): theirs[tool][file] for tool in theirs for file in sources
    }
    (folder / 'scripts' / 'tool.py').write_text('def fourfold(number): return 0\n')
    with pytest.raises(ForgeError, match=r'scripts/tool\.py .* was edited'):
        tool_archive(folder)
    (folder / 'assets' / 'tools.zip').unlink()
    with pytest.raises(ForgeError, match='not a tool that was exported'):
        tool_archive(folder)
