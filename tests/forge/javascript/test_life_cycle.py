"""The life of a JavaScript tool in a library: the same as that of one in Python."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from skills_ref import validate  # pyright: ignore[reportMissingTypeStubs]

from habilis.agent import Agent
from habilis.core.errors import ForgeError, ToolArgumentsError, ToolCallError
from habilis.forge.build.composition import compose
from habilis.forge.build.forge import Forge
from habilis.forge.checks.timing import compare_speed
from habilis.forge.library.additions import add_tool
from habilis.forge.library.checkup import check_library, repair
from habilis.forge.library.library import Library
from habilis.forge.library.merges import merge
from habilis.forge.library.retests import retest
from habilis.forge.library.revisions import revise
from habilis.forge.library.tools import library_tool
from habilis.forge.sharing.archives import read_archive, write_archive
from habilis.forge.sharing.skills import export_skill
from habilis.forge.sharing.transfer import export_tools, import_tools
from habilis.models import ScriptedModel
from tests.cli.process import habilis
from tests.forge import samples as python
from tests.forge.javascript.samples import double, fourfold, tool

pytestmark = pytest.mark.usefixtures('quickjs')


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = Library(tmp_path / 'library')
    made.add(double(), origin='user', tests=1)
    made.add(fourfold(), tests=1)
    return made


def test_it_is_kept_as_readable_files_and_found(library: Library) -> None:
    folder = library.folder / 'double' / 'v1'
    assert sorted(path.name for path in folder.iterdir()) == ['test_tool.js', 'tool.js', 'tool.json']
    manifest = json.loads((folder / 'tool.json').read_text())
    assert (manifest['language'], manifest['signature']) == ('javascript', 'double(number: float) -> float')
    assert library.candidate('fourfold') == fourfold()
    assert [found.name for found in library.search('twice a number')][:1] == ['double']
    assert library.rebuild_index() == 2


async def test_an_agent_calls_it_with_validated_arguments(library: Library) -> None:
    doubling = library_tool(library, 'double')
    assert await doubling.invoke((4,)) == 8
    with pytest.raises(ToolArgumentsError, match='number'):
        await doubling.invoke(('four',))
    model = ScriptedModel(['```python\nfinal_answer(fourfold(2.5))\n```'])
    agent = Agent(model, tools=[library_tool(library, 'fourfold')], journal='off')
    assert (await agent.run('Four times 2.5?')).output == 10
    assert {used.name: used.calls for used in library.usage.read()} == {'double': 1, 'fourfold': 1}


async def test_arguments_by_name_and_optional_ones(library: Library) -> None:
    code = """/**
 * Joins.
 * @param {string} first
 * @param {string} [separator]
 * @param {number} [count=2]
 * @returns {string}
 */
export function joined(first, separator = String('-'), count = 2) {
  return Array(count).fill(first).join(separator);
}
"""
    library.add(replace(tool('joined', ''), code=code))
    joined = library_tool(library, 'joined')
    assert await joined.invoke(('a',)) == 'a-a'
    assert await joined.invoke((), {'count': 3, 'first': 'é'}) == 'é-é-é'
    assert await joined.invoke(('a', '+'), {}) == 'a+a'
    assert await joined.invoke(('a', None), {}) == 'a-a'


async def test_new_versions_and_rollback(library: Library) -> None:
    with pytest.raises(ForgeError, match='the tests of double fail'):
        await revise(library, 'double', double(factor=3).code)
    revision = await revise(library, 'double', double().code.replace('number * 2', 'number + number'))
    assert (revision.manifest.version, revision.manifest.language, revision.manifest.mutants) == (2, 'javascript', 1)
    assert [user.version for user in revision.users] == [2]
    library.use_version('double', 1)
    assert 'number * 2' in library.candidate('double').code


def test_the_languages_do_not_use_each_other(library: Library) -> None:
    library.add(python.double('twice'))
    with pytest.raises(ForgeError, match=r'uses twice, which is written in another language \(python\)'):
        library.add(replace(tool('mixed', 'return twice(1)', before="import { twice } from 'library';")))
    with pytest.raises(ForgeError, match=r'uses double, which is written in another language \(javascript\)'):
        library.add(python.fourfold())


async def test_edits_by_hand_are_noticed_and_accepted_if_they_pass(library: Library) -> None:
    path = library.folder / 'double' / 'v1' / 'tool.js'
    path.write_text(path.read_text().replace('Twice', 'Two times'))
    assert [problem.what for problem in check_library(library)] == ['version 1 was edited by hand']
    assert 'accepted the edits of double version 1, which pass its tests' in await repair(library)
    assert library.manifest('double').summary == 'Two times a number.'
    assert check_library(library) == []
    path.write_text(path.read_text().replace('* 2', '* 3'))
    assert any('did not accept the edits' in line for line in await repair(library))


async def test_it_is_shared_and_tested_again(library: Library, tmp_path: Path) -> None:
    file = tmp_path / 'tools.zip'
    assert sorted(export_tools(library, ['fourfold'], file)) == ['double', 'fourfold']
    other = Library(tmp_path / 'other')
    report = await import_tools(other, file)
    assert [made.name for made in report.added] == ['double', 'fourfold']
    assert (await import_tools(other, file)).skipped == ('double', 'fourfold')
    assert await library_tool(other, 'fourfold').invoke((2,)) == 8
    files = {name: dict(content) for name, content in read_archive(file).tools.items()}
    files['double']['tool.js'] = files['double']['tool.js'].replace(b'* 2;', b'* 3;')
    write_archive(files, file)
    with pytest.raises(ForgeError, match='the tests of double fail'):
        await import_tools(Library(tmp_path / 'third'), file)


@pytest.mark.parametrize('change', ['missing', 'both', 'manifest'])
async def test_a_file_of_mixed_languages_is_refused(library: Library, tmp_path: Path, change: str) -> None:
    file = tmp_path / 'tools.zip'
    export_tools(library, ['double'], file)
    files = {name: dict(content) for name, content in read_archive(file).tools.items()}
    if change == 'missing':
        files['double']['test_tool.py'] = files['double'].pop('test_tool.js')
    elif change == 'both':
        files['double']['tool.py'] = b''
    else:
        files['double']['tool.json'] = files['double']['tool.json'].replace(b'"javascript"', b'"python"')
    write_archive(files, file)
    with pytest.raises(ForgeError, match='is refused'):
        await import_tools(Library(tmp_path / 'other'), file)


def test_it_becomes_a_skill(library: Library, tmp_path: Path) -> None:
    folder = export_skill(library, 'double', tmp_path / 'skills')
    assert validate(folder) == []
    assert "import { double } from './tool.js';" in (folder / 'SKILL.md').read_text()
    with pytest.raises(ForgeError, match=r'export it to a \.zip file'):
        export_skill(library, 'fourfold', tmp_path / 'skills')


async def test_a_failing_call_is_counted(library: Library) -> None:
    library.add(tool('failing', 'throw new RangeError("too far")'))
    with pytest.raises(ToolCallError, match='failing: RangeError: too far'):
        await library_tool(library, 'failing').invoke((1,))
    assert [used.failed for used in library.usage.read()] == [1]


def test_the_commands_work_as_for_python(library: Library, tmp_path: Path) -> None:
    def tools(command: str, *arguments: str) -> str:
        done = habilis('tools', command, '--library', str(library.folder), *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert 'double' in tools('list')
    shown = tools('show', 'double')
    assert 'language: javascript' in shown
    assert '// v1/tool.js' in shown
    assert 'export function double(number) {' in shown
    assert tools('run', 'fourfold', '5') == '20.0\n'
    assert 'double' in tools('test')
    new = tmp_path / 'new.js'
    new.write_text(double().code.replace('number * 2', '2 * number'))
    assert 'version 2 is in use' in tools('edit', 'double', str(new))
    tools('rollback', 'double', '1')
    tools('doctor')
    halve = double('halve')
    (tmp_path / 'halve.js').write_text(halve.code.replace('number * 2', 'number / 2').replace('Twice', 'Half'))
    (tmp_path / 'test_halve.js').write_text(halve.tests.replace('6', '1.5').replace('./tool.js', './halve.js'))
    assert 'it passes 1 tests, which notice 2 of 2 wrong variants' in tools('add', str(tmp_path / 'halve.js'))
    assert tools('run', 'halve', '5') == '2.5\n'


async def test_a_file_of_a_person_is_added_after_the_red_check(tmp_path: Path) -> None:
    library = Library(tmp_path / 'library')
    made = await add_tool(library, double())
    assert (made.language, made.origin, made.mutants > 0) == ('javascript', 'user', True)
    with pytest.raises(ForgeError, match='pass on a function that does nothing'):
        await add_tool(library, replace(fourfold(), tests="import './tool.js';\nfunction test_nothing() {}\n"))


async def test_what_needs_python_says_so(library: Library) -> None:
    with pytest.raises(ForgeError, match='written in javascript; only tools in Python can be merged'):
        await merge(library, 'double', 'fourfold')
    with pytest.raises(ForgeError, match='only tools in Python can be compared by speed'):
        await compare_speed([library.candidate('double')])
    with pytest.raises(ForgeError, match='only tools in Python can be composed'):
        await compose(Forge(library, ScriptedModel([])), ['double', 'fourfold'], 'both')
    [result] = await retest(library, ['double'], reviewed=True)
    assert result.verification.ok
