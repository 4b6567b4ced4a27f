"""Permission modes: what code, tools and commands may change without a question."""

from pathlib import Path
from typing import Any

import pytest

from habilis.agent.agent_tools import each_tool
from habilis.assistant import Session
from habilis.core.errors import AgentError
from habilis.memory import Memory
from habilis.models.scripted import ScriptedModel
from habilis.tools import Approval, ApprovalRequest, Files, tool
from tests.agent.scripts import block
from tests.assistant.conftest import Open, Page, sent
from tests.place import Place
from tests.requirements import require_namespaces


def attempts(*lines: str) -> str:
    """A cell that tries each line, and answers with `done` or the error of each."""
    one = 'try:\n    {}\n    seen.append("done")\nexcept Exception as e:\n    seen.append(str(e))\n'
    return block(f'seen = []\n{"".join(map(one.format, lines))}final_answer(seen)')


ALL = attempts("open('a', 'w').close()", "write_file('b', '')", "bash('touch c')", "import os; os.system('touch d')")


@pytest.fixture
def folder(place: Place) -> Path:
    """A folder that is shared with the session."""
    made = place.folder / 'shared'
    made.mkdir()
    return made


@pytest.mark.parametrize(
    ('mode', 'asked', 'written'),
    [
        ('ask', ['write_file', 'bash'], 'bc'),
        ('edits', ['bash'], 'bc'),
        ('plan', [], ''),
        ('all', [], 'abcd'),
    ],
)
async def test_code_tools_and_commands_obey_the_mode(
    mode: str, asked: list[str], written: str, session: Open, folder: Path
) -> None:
    require_namespaces()
    page = Page(*[True] * len(asked))
    async with session([ALL], view=page, workspace=folder, sandbox='process', mode=mode) as chat:
        await chat.send('Go.')
    questions = [question.tool for question in page.questions if isinstance(question, ApprovalRequest)]
    assert (questions, ''.join(sorted(path.name for path in folder.iterdir()))) == (asked, written)


async def test_a_shared_folder_is_asked_about_unless_the_session_says_otherwise(session: Open, folder: Path) -> None:
    script = attempts("open('a', 'w').close()", "write_file('b', '')")
    page = Page(Approval(approved=False, reason='not yet'))
    async with session([script, script], view=page, workspace=folder) as chat:
        assert chat.mode == 'ask'
        said = (await chat.send('Go.')).unwrap()
        assert 'not permitted' in said[0]
        assert said[1].endswith('write_file was not called: the user said no: not yet')
        await chat.set_mode('edits')  # without commands, code may change files like the tools
        assert (await chat.send('Go.')).output == ['done', 'done']
    async with session([]) as chat:
        assert chat.mode == 'all'
    async with session([], workspace=folder, sandbox_settings={'read_only': True}) as chat:
        assert chat.mode == 'all'


@pytest.mark.parametrize(
    ('read_only', 'mode', 'writes'), [(True, 'all', False), (True, 'ask', False), (False, 'ask', True)]
)
async def test_tools_that_write_are_offered_only_where_files_may_be_changed(
    read_only: bool, mode: str, writes: bool, session: Open, folder: Path
) -> None:
    options: Any = {'workspace': folder, 'sandbox_settings': {'read_only': read_only}, 'mode': mode}
    async with session(['Hello.'], view=Page(), **options) as chat:
        await chat.send('Hi.')
        assert isinstance(chat.model, ScriptedModel)
        prompt = chat.model.requests[0].messages[0].text
        assert ('def read_file' in prompt, 'def write_file' in prompt) == (True, writes)
        assert ('update_file' in {tool.name for tool in each_tool(chat.opened.tools)}) is writes


async def test_the_next_message_says_what_code_may_do_after_another_mode(session: Open, folder: Path) -> None:
    async with session(['Hello.'] * 4, view=Page(), workspace=folder) as chat:
        await chat.send('1')
        for number, mode in enumerate(('all', 'plan', 'ask')):
            await chat.set_mode(mode)
            await chat.send(str(number + 2))
        told = sent(chat, 3)[::2]
    assert [text.partition('no files yet. ')[2] for text in told] == [
        'Files are read-only for your code, because changes need approval: call write_file or update_file.',
        'Your code can change files in it.',
        'Nothing can be changed in plan mode: look, and answer with a plan.',
        'Files are read-only for your code, because changes need approval: call write_file or update_file.',
    ]


async def test_a_plan_is_made_without_changes_changed_by_the_user_and_carried_out(
    session: Open, folder: Path, memory: Memory
) -> None:
    looks = attempts("write_file('a', '')", "remember('x')", 'dye()', "find_files('*')", 'recall("x")')
    replies = [looks, '1. Write a.', block("x = 5\nfinal_answer(write_file('b', ''))")]
    dyed: list[int] = []

    @tool
    def dye() -> None:
        """Dye."""
        dyed.append(1)

    page = Page(True)
    async with session(replies, view=page, workspace=folder, tools=[dye]) as chat:
        await chat.set_mode('plan')
        said = (await chat.send('Look around.')).unwrap()
        assert said[:3] == [f"name '{name}' is not defined" for name in ('write_file', 'remember', 'dye')]
        assert {tool.name for tool in each_tool(chat.opened.tools)} >= {'read_file', 'recall', 'ask_user'}
        assert (said[3:], dyed, await memory.facts(), list(folder.iterdir())) == (['done'] * 2, [], [], [])
        plan = (await chat.send('Plan it.')).unwrap()
        assert isinstance(chat.model, ScriptedModel)
        assert 'plan mode' in chat.model.requests[1].messages[0].text
        result = await chat.carry_out(plan.replace('a', 'b'))
        assert (chat.mode, result.ended) == ('ask', 'answer')
        assert sent(chat, 2)[-1].startswith('Carry out this plan:\n\n1. Write b.')
        assert 'plan mode' not in chat.model.requests[2].messages[0].text
    assert [path.name for path in folder.iterdir()] == ['b']


async def test_a_conversation_goes_on_in_its_mode(session: Open, folder: Path, memory: Memory, place: Place) -> None:
    async with session(['Fine.'], workspace=folder) as chat:
        await chat.set_mode('plan')
        await chat.send('Hello.')
    again = Session(ScriptedModel([]), memory=memory, journal=place.folder / 'runs.db', id=chat.id, workspace=folder)
    async with again:
        assert again.mode == 'plan'


async def test_variables_survive_another_mode(session: Open, folder: Path) -> None:
    async with session([block('x = 41\nfinal_answer(x)'), block('final_answer(x + 1)')], workspace=folder) as chat:
        await chat.send('Set x.')
        await chat.set_mode('all')
        assert (await chat.send('More.')).output == 42


async def test_a_mode_that_cannot_hold_is_refused(session: Open, folder: Path) -> None:
    options: Any = {'workspace': folder, 'tools': [Files()]}
    async with session([], **options) as chat:
        assert chat.mode == 'all'
        with pytest.raises(AgentError, match='the mode ask needs approval of what files does'):
            await chat.set_mode('ask')
        with pytest.raises(AgentError, match="no such mode: 'none'; there are ask, edits, plan, all"):
            await chat.set_mode('none')
        assert chat.mode == 'all'
