"""Runs with skills: what the model is told, what its code can do with them, and what a resumed run finds."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from habilis import Agent, CodeRules, File, Sandbox, ScriptedModel, tool
from habilis.core.errors import AgentError, RunChanged, SkillError
from habilis.tools.skills.skill import Skill
from tests.agent.scripts import block, sent
from tests.requirements import require_namespaces

CORPUS = Path(__file__).parents[1] / 'tools' / 'skills' / 'corpus' / 'valid'
TOTALS = CORPUS / 'column-total'
TABLE = File(b'day;amount\nMon;1.200,50\nTue;3,25\n', name='sales.csv')
READ = block("print(open('/skills/column-total/SKILL.md').read())")
RUN = block("run_script('/skills/column-total/scripts/total.py', '/inputs/sales.csv', 'amount')")
ANSWER = block('final_answer(1203.75)')


def make(folder: Path, files: dict[str, str] | None = None, head: str = '') -> Path:
    for path, text in {'SKILL.md': f'---\ndescription: Does it.\n{head}---\n', **(files or {})}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding='utf-8')
    return folder


@pytest.mark.parametrize('backend', ['wasm', 'process'])
async def test_the_model_reads_a_skill_and_runs_its_script_in_the_sandbox(backend: str) -> None:
    if backend == 'process':
        require_namespaces()
    model = ScriptedModel([READ, RUN, ANSWER])
    async with Agent(model, skills=[CORPUS], sandbox=backend, journal='off') as agent:
        result = await agent.run(['What is the total?', TABLE])
    assert result.output == 1203.75
    system = model.requests[0].messages[0].text
    assert '- column-total: Adds up a column of a CSV file. Use it when' in system
    assert 'rounded to two digits' not in system
    assert 'It prints the sum, rounded to two digits.' in sent(model, 1)
    assert model.requests[2].messages[-1].text == 'Output:\n1203.75'


async def test_a_script_sees_its_arguments_and_neighbours_and_leaves_nothing_behind(tmp_path: Path) -> None:
    one = make(tmp_path / 'one', {'run.py': 'import sys, names\nprint(names.ME, sys.argv[1:])', 'names.py': 'ME = 1'})
    two = make(tmp_path / 'two', {'run.py': 'import names\nprint(names.ME)\nraise SystemExit(3)', 'names.py': 'ME = 2'})
    code = """
import sys
before = list(sys.argv), list(sys.path)
run_script('/skills/one/run.py', 'a b', 5)
try:
    run_script('/skills/two/run.py')
except RuntimeError as error:
    print(error)
print(before == (sys.argv, sys.path))
try:
    open('/skills/one/run.py', 'w')
except OSError as error:
    print('read-only')
"""
    model = ScriptedModel([block(code), block('final_answer(0)')])
    async with Agent(model, skills=[one, two], journal='off') as agent:
        result = await agent.run('Go')
    cell = result.steps[0].cell
    assert cell is not None
    assert cell.stdout.splitlines() == [
        "1 ['a b', '5']",
        '2',
        '/skills/two/run.py ended with exit code 3',
        'True',
        'read-only',
    ]


@pytest.mark.parametrize(('backend', 'seen'), [('wasm', 'starts no processes'), ('process', 'hello you')])
async def test_a_script_of_another_language_needs_processes(tmp_path: Path, backend: str, seen: str) -> None:
    if backend == 'process':
        require_namespaces()
    skill = make(tmp_path / 'greet', {'hello.sh': '#!/bin/sh\necho hello $1\n'})
    model = ScriptedModel([block("run_script('/skills/greet/hello.sh', 'you')"), block('final_answer(0)')])
    async with Agent(model, skills=[skill], sandbox=backend, journal='off') as agent:
        await agent.run('Go')
    assert seen in model.requests[1].messages[-1].text


async def test_turns_and_subagents_have_the_skills_too() -> None:
    asked = block("final_answer(await delegate('Read it'))")
    inside = block("final_answer(len(open('/skills/plain/SKILL.md').read()))")
    model = ScriptedModel([READ, ANSWER, asked, inside])
    async with Agent(model, skills=[CORPUS], helpers=True, journal='off') as agent, agent.conversation() as chat:
        await chat.run('First')
        result = await chat.run('Second')
    assert result.output == len((CORPUS / 'plain' / 'SKILL.md').read_text())
    assert '- plain: The least' in model.requests[3].messages[0].text


# Resume ---------------------------------------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys
from habilis import Agent, File, ScriptedModel, tool

@tool
def die() -> None:
    '''Die.'''
    os.kill(os.getpid(), signal.SIGKILL)

read, run, table = sys.stdin.read().split('|')
model = ScriptedModel([read, run, '```python\\ndie()\\n```'])
agent = Agent(model, tools=[die], skills=[sys.argv[2]], journal=sys.argv[1], sandbox=sys.argv[3])
agent.run_sync(['What is the total?', File(table.encode(), name='sales.csv')], run_id='run-1')
"""


def killed(tmp_path: Path, backend: str = 'wasm') -> tuple[Path, Path]:
    """The journal of a run that was killed after it had used a skill, and the folder of the skill."""
    skill, journal = tmp_path / 'column-total', tmp_path / 'runs.db'
    shutil.copytree(TOTALS, skill)
    command = [sys.executable, '-c', PROGRAM, str(journal), str(skill), backend]
    done = subprocess.run(command, input=f'{READ}|{RUN}|{TABLE.data.decode()}', text=True, check=False)
    assert done.returncode == -9
    return journal, skill


@tool
def die() -> None:
    """Die."""


@pytest.mark.parametrize('backend', ['wasm', 'process'])
async def test_a_killed_run_is_resumed_with_its_skills(tmp_path: Path, backend: str) -> None:
    if backend == 'process':
        require_namespaces()
    journal, skill = killed(tmp_path, backend)
    more = make(tmp_path / 'more')
    model = ScriptedModel([RUN, ANSWER])
    async with Agent(model, tools=[die], skills=[skill, more], journal=journal, sandbox=backend) as agent:
        result = await agent.run('What is the total?', run_id='run-1', resume=True)
    assert result.output == 1203.75
    assert model.requests[1].messages[-1].text == 'Output:\n1203.75'
    assert '- more:' not in model.requests[0].messages[0].text


async def test_a_changed_skill_is_noticed(tmp_path: Path) -> None:
    journal, skill = killed(tmp_path)
    (skill / 'scripts' / 'table.py').write_text('column = None')
    async with Agent(ScriptedModel([ANSWER]), tools=[die], skills=[skill], journal=journal) as agent:
        with pytest.raises(RunChanged, match='the skill column-total has changed since the run was started'):
            await agent.resume('run-1')
    async with Agent(ScriptedModel([ANSWER]), tools=[die], journal=journal) as agent:
        with pytest.raises(RunChanged, match='the skill column-total is missing'):
            await agent.resume('run-1')
    async with Agent(ScriptedModel([ANSWER]), tools=[die], skills=[skill], journal=journal) as agent:
        assert (await agent.resume('run-1', on_change='continue')).output == 1203.75


# Refused --------------------------------------------------------------------------------------------------------------


async def test_a_skill_that_asks_for_tools_that_are_not_there_is_refused(tmp_path: Path) -> None:
    skill = make(tmp_path / 'greedy', head='allowed-tools: Read search\n')

    @tool
    def search(query: str) -> str:
        """Search."""
        return query

    async with Agent(ScriptedModel([ANSWER]), skills=[skill], journal='off') as agent:
        with pytest.raises(SkillError, match='greedy asks for the tool search, and there is none'):
            await agent.run('Go')
        assert (await agent.run('Go', tools=[search])).output == 1203.75
    shell = make(tmp_path / 'shell', head='allowed-tools: Bash(git:*)\n')
    async with Agent(ScriptedModel([ANSWER]), skills=[shell], sandbox='wasm', journal='off') as agent:
        with pytest.raises(SkillError, match=r'the sandbox starts no processes: .*process'):
            await agent.run('Go')


async def test_an_agent_that_cannot_read_files_has_no_skills() -> None:
    with pytest.raises(AgentError, match='python=False'):
        Agent(ScriptedModel([]), skills=[TOTALS], python=False)
    async with await Sandbox.create() as sandbox:
        with pytest.raises(AgentError, match='only for a sandbox that the agent creates'):
            Agent(ScriptedModel([]), skills=[TOTALS], sandbox=sandbox)
    with pytest.raises(TypeError, match='skills must be a list'):
        Agent(ScriptedModel([]), skills='column-total')


async def test_a_name_that_is_taken_and_code_rules_leave_out_the_script_runner() -> None:
    @tool
    def run_script(path: str) -> str:
        """Mine."""
        return path

    for options in ({'tools': [run_script]}, {'code_rules': CodeRules(imports=('math',))}):
        model = ScriptedModel([ANSWER])
        async with Agent(model, skills=[TOTALS], journal='off', **options) as agent:  # pyright: ignore[reportArgumentType]
            await agent.run('Go')
        assert 'call run_script(' not in model.requests[0].messages[0].text


async def test_many_skills_take_a_bounded_part_of_the_prompt() -> None:
    skills = [Skill(name=f'skill-{number}', description='word ' * 200, body='') for number in range(120)]
    model = ScriptedModel([ANSWER])
    async with Agent(model, skills=skills, journal='off') as agent:
        await agent.run('Go')
    system = model.requests[0].messages[0].text
    assert len(system) < 12_000
    assert '- skill-49: word' in system
    assert "- and 70 more: os.listdir('/skills')" in system


def test_a_skill_made_by_hand_has_a_valid_name() -> None:
    with pytest.raises(SkillError, match=r"'\.\./evil' is not a valid name; use 'evil'"):
        Skill(name='../evil', description='x', body='')
