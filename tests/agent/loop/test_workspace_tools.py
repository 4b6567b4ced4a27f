"""`Files()` in an agent: it works on the workspace of the run, whoever calls it."""

import json
from pathlib import Path

import pytest

from habilis.agent import Agent
from habilis.core.errors import AgentError, JournalError
from habilis.models import ScriptedModel
from habilis.models.contract import FunctionCall, Reply
from habilis.sandbox import Sandbox
from habilis.tools import ApprovalRequest, Files
from tests.agent.hooks.watching import code
from tests.journal.faults import PowerCut


async def test_files_are_those_of_the_workspace_of_the_run(tmp_path: Path) -> None:
    script = code("write_file('a/b.txt', 'hello')\nfinal_answer([open('a/b.txt').read(), find_files('**/*.txt')])")
    async with Agent(ScriptedModel([script]), tools=[Files()], workspace=tmp_path, journal='off') as agent:
        assert (await agent.run('go')).output == ['hello', ['a/b.txt']]
    assert (tmp_path / 'a/b.txt').read_text() == 'hello'


async def test_files_without_python_work_on_the_workspace_too(tmp_path: Path) -> None:
    calls = tuple(
        FunctionCall(id=name, name=name, arguments=json.dumps(arguments))
        for name, arguments in {'write_file': {'path': 'x', 'text': 'y'}, 'grep': {'pattern': 'nothing'}}.items()
    )
    model = ScriptedModel([Reply(calls=calls, finish='calls'), 'Done.'], functions=True)
    async with Agent(model, tools=[Files(side='model')], python=False, workspace=tmp_path, journal='off') as agent:
        assert (await agent.run('go')).output == 'Done.'
    assert (tmp_path / 'x').read_text() == 'y'


async def test_files_without_a_workspace_are_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match='the toolset files needs a workspace: pass Agent'):
        Agent(ScriptedModel([]), tools=[Files()])
    async with Agent(ScriptedModel([]), journal='off') as agent:
        with pytest.raises(AgentError, match='the toolset files needs a workspace'):
            await agent.run('go', tools=[Files()])
    async with await Sandbox.create() as sandbox:
        with pytest.raises(AgentError, match='the toolset files needs a workspace'):
            Agent(ScriptedModel([]), tools=[Files()], sandbox=sandbox)
    Agent(ScriptedModel([]), tools=[Files(tmp_path)])


async def test_tools_that_change_files_are_not_offered_where_the_workspace_is_read_only(tmp_path: Path) -> None:
    (tmp_path / 'x').write_text('y')
    script = code("final_answer([read_file('x'), 'write_file' in globals() or 'write_file' in dir(__builtins__)])")
    model = ScriptedModel([script])
    async with Agent(
        model, tools=[Files()], workspace=tmp_path, sandbox_settings={'read_only': True}, journal='off'
    ) as agent:
        assert (await agent.run('go')).output == ['y', False]
    assert 'def grep' in model.requests[0].messages[0].text
    assert 'def write_file' not in model.requests[0].messages[0].text


async def test_d15_a_person_sees_the_diff_and_no_leaves_the_file_of_the_workspace_untouched(tmp_path: Path) -> None:
    (tmp_path / 'x').write_text('old\n')
    shown: list[str] = []

    def refuse(request: ApprovalRequest) -> bool:
        shown.append(request.diff)
        return False

    script = code("try:\n    write_file('x', 'new\\n')\nexcept Exception as e:\n    final_answer(str(e))")
    tools = [Files(needs_approval=True)]
    async with Agent(ScriptedModel([script]), tools=tools, workspace=tmp_path, approve=refuse, journal='off') as agent:
        assert (await agent.run('go')).output == 'write_file was not called: the user said no'
    assert shown == ['--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n']
    assert (tmp_path / 'x').read_text() == 'old\n'


async def test_writes_of_a_resumed_run_are_not_repeated(tmp_path: Path) -> None:
    store = PowerCut()
    script = code("write_file('x', 'one')\nupdate_file('x', 'one', 'two')\nfinal_answer(read_file('x'))")
    async with Agent(ScriptedModel([script]), tools=[Files()], workspace=tmp_path, journal=store) as agent:
        with pytest.raises(JournalError):
            await agent.run('go', run_id='run-1')
    assert (tmp_path / 'x').read_text() == 'two'
    (tmp_path / 'x').write_text('what a person made of it')
    store.on = False
    async with Agent(ScriptedModel([]), tools=[Files()], workspace=tmp_path, journal=store) as agent:
        assert (await agent.resume('run-1')).output == 'two'
    assert (tmp_path / 'x').read_text() == 'what a person made of it'
