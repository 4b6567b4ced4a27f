"""While changes need approval, code cannot make them behind the tools: not with Python, not with processes."""

import contextlib
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from habilis.agent import Agent, Helper
from habilis.core.errors import AgentError
from habilis.models import FunctionCall, Reply, ScriptedModel
from habilis.sandbox import Sandbox
from habilis.sandbox.contract import Mount
from habilis.sandbox.options import SiblingFiles
from habilis.tools import Files, Shell, Toolset
from habilis.tools.contract import ApprovalRequest
from tests.agent.hooks.watching import code
from tests.agent.scripts import sent
from tests.requirements import require_namespaces
from tests.sandbox.docker import engine

PYTHON_ATTACKS = (
    "open('x', 'w').write('bad')",
    "open('x', 'r+').write('bad')",
    "pathlib.Path('/workspace/x').write_text('bad')",
    "os.truncate('x', 0)",
    "os.remove('x')",
    "os.rename('x', 'y')",
    "os.mkdir('new')",
    "os.symlink('/tmp', 'new')",
    "os.link('x', 'new')",
    "os.utime('x', (0, 0))",
    "os.open('x', os.O_RDONLY | os.O_TRUNC)",
    "os.open('x', os.O_WRONLY, dir_fd=os.open('.', os.O_RDONLY))",
    "os.write(os.open('x', os.O_RDWR), b'bad')",
)
PROCESS_ATTACKS = (
    "os.system('echo bad > x')",
    "subprocess.run(['sh', '-c', 'rm x'])",
    "os.system('mount -o remount,rw,bind /workspace; echo bad > x')",
    'os.system(\'unshare -rm sh -c "mount -o remount,rw,bind /workspace; echo bad > /workspace/x"\')',
    "os.system('echo bad > /proc/1/root/workspace/x')",
    "os.system('(sleep 0.1; echo bad > x) &')",
    "open(f'/proc/self/fd/{os.open(\"x\", os.O_RDONLY)}', 'r+').write('bad')",
    "__import__('mmap').mmap(os.open('x', os.O_RDONLY), 0).write(b'bad')",
    "os.system('mkdir /tmp/m; mount --bind /workspace /tmp/m; echo bad > /tmp/m/x')",
    "os.system('umount -l /workspace; echo bad > /workspace/x; ln x /tmp/x && echo bad > /tmp/x')",
    "__import__('threading').Timer(0.1, lambda: open('x', 'w').write('bad')).start()",
    "bash('echo bad > x')",
)


async def attack(backend: str, folder: Path, tools: Sequence[Toolset], attacks: Sequence[str]) -> list[str]:
    """The results of attacks in one cell: the error of each, or its value."""
    body = 'import os, pathlib\nseen = []\n' + ('import subprocess\n' if backend != 'wasm' else '')
    for one in attacks:
        body += f'try:\n    seen.append(str({one}))\nexcept Exception as error:\n    seen.append(str(error))\n'
    (folder / 'x').write_text('good')
    script = code(f'{body}final_answer(seen)')
    options: dict[str, Any] = {'sandbox': backend, 'workspace': folder, 'tools': tools, 'journal': 'off'}
    async with Agent(ScriptedModel([script]), approve=lambda _: False, **options) as agent:
        seen = (await agent.run('go')).unwrap()
    assert {path.name: path.read_text() for path in folder.iterdir()} == {'x': 'good'}
    return seen


@pytest.fixture(params=['wasm', 'process', 'docker'])
def backend(request: pytest.FixtureRequest) -> Generator[str]:
    """Each backend that runs here."""
    name: str = request.param
    if name == 'process':
        require_namespaces()
    with engine.registered() if name == 'docker' else contextlib.nullcontext():
        yield engine.BACKEND if name == 'docker' else name


def asking(backend: str) -> list[Toolset]:
    return [Files(needs_approval=True), *([] if backend == 'wasm' else [Shell(needs_approval=True)])]


@pytest.mark.one_protocol
async def test_code_cannot_change_the_workspace_while_changes_need_approval(backend: str, tmp_path: Path) -> None:
    seen = await attack(backend, tmp_path, asking(backend), PYTHON_ATTACKS)
    assert all('Read-only file system' in text or 'not permitted' in text for text in seen), seen
    if backend != 'wasm':
        seen = await attack(backend, tmp_path, asking(backend), PROCESS_ATTACKS)
        assert 'bash was not called: the user said no' in seen[-1]
        await attack(backend, tmp_path, [Shell(needs_approval=True)], [*PYTHON_ATTACKS, *PROCESS_ATTACKS])
        seen = await attack(backend, tmp_path, [Files(needs_approval=True), Shell()], PROCESS_ATTACKS)
        assert seen[-1].endswith(
            '[tip: files are read-only for your code, because changes need approval: call write_file or update_file]'
        )


@pytest.mark.one_protocol
async def test_the_tools_still_change_what_was_approved_and_the_model_is_told_which(
    backend: str, tmp_path: Path
) -> None:
    tools = asking(backend)
    shell = '' if backend == 'wasm' else "; bash('echo by bash > b')"
    replies = [code("open('a', 'w')"), code(f"write_file('a', 'by tool'){shell}\nfinal_answer(open('a').read())")]
    options: dict[str, Any] = {'sandbox': backend, 'workspace': tmp_path, 'tools': tools, 'journal': 'off'}
    async with Agent(model := ScriptedModel(replies), approve=lambda _: True, **options) as agent:
        assert (await agent.run('go')).output == 'by tool'
    others = ', update_file or bash' if shell else ' or update_file'
    advice = f'iles are read-only for your code, because changes need approval: call write_file{others}'
    assert f'F{advice}.' in model.requests[0].messages[-1].text
    assert f'(f{advice})' in model.requests[1].messages[-1].text
    assert (tmp_path / 'a').read_text() == 'by tool'
    assert not shell or (tmp_path / 'b').read_text() == 'by bash\n'


async def test_mounts_of_the_same_files_are_read_only_too(tmp_path: Path) -> None:
    (tmp_path / 'x').write_text('good')
    settings: Any = {'mounts': [Mount(source=tmp_path, target='/all', writable=True)]}
    script = code("try:\n    open('/all/x', 'w')\nexcept OSError:\n    final_answer('no')")
    tools = [Files(tmp_path, needs_approval=True)]
    async with Agent(ScriptedModel([script]), tools=tools, sandbox_settings=settings, journal='off') as agent:
        assert (await agent.run('go')).output == 'no'
    assert (tmp_path / 'x').read_text() == 'good'


async def test_a_folder_that_code_does_not_share_leaves_the_workspace_writable(tmp_path: Path) -> None:
    (tmp_path / 'a').mkdir()
    tools = [Files(tmp_path / 'a', needs_approval=True)]
    script = code("final_answer(open('x', 'w').write('fine'))")
    async with Agent(ScriptedModel([script]), tools=tools, workspace=tmp_path / 'b', journal='off') as agent:
        assert (await agent.run('go')).output == 4


async def test_a_sandbox_whose_code_can_write_is_refused(tmp_path: Path) -> None:
    tools = [Files(needs_approval=True)]
    async with (
        await Sandbox.create(workspace=tmp_path) as sandbox,
        Agent(ScriptedModel([]), tools=tools, sandbox=sandbox, journal='off') as agent,
    ):
        with pytest.raises(AgentError, match="in the sandbox 'main' can change them without: create it with read_only"):
            await agent.run('go')
    async with await Sandbox.create(workspace=tmp_path, read_only='ask first') as sandbox:
        script = code("try:\n    open('x', 'w')\nexcept OSError:\n    final_answer('no')")
        async with Agent(ScriptedModel([script]), tools=tools, sandbox=sandbox, journal='off') as agent:
            assert (await agent.run('go')).output == 'no'


async def test_a_turn_with_such_a_toolset_is_refused_where_code_of_the_conversation_can_write(tmp_path: Path) -> None:
    async with Agent(ScriptedModel([]), workspace=tmp_path, journal='off') as agent, agent.conversation() as chat:
        with pytest.raises(AgentError, match='pass the toolset to the agent'):
            await chat.run('go', tools=[Files(needs_approval=True)])


async def test_no_other_sandbox_and_no_subagent_is_a_way_around(tmp_path: Path) -> None:
    tools = [Files(needs_approval=True)]
    async with (
        await Sandbox.create(workspace=tmp_path, read_only='ask first') as main,
        await Sandbox.create(workspace=tmp_path) as other,
        await Sandbox.create(workspace=True) as own,
    ):
        async with Agent(ScriptedModel([]), tools=tools, sandbox={'a': main, 'b': other}, journal='off') as agent:
            with pytest.raises(AgentError, match="in the sandbox 'b' can change them"):
                await agent.run('go')
        copies = "run_in('b', 'open(\\'x\\', \\'w\\')')\ntry:\n    copy_file('x', 'b', 'a')\nexcept Exception as e:\n"
        script = code(f'{copies}    final_answer(str(e))')
        async with Agent(ScriptedModel([script]), tools=tools, sandbox={'a': main, 'b': own}, journal='off') as agent:
            assert (await agent.run('go')).unwrap().endswith('x was not copied: ask first')
    delegated = [code("final_answer(await delegate('write'))"), code("open('x', 'w')"), code("final_answer('no')")]
    options: dict[str, Any] = {'workspace': tmp_path, 'helpers': True, 'journal': 'off'}
    async with Agent(ScriptedModel(delegated), tools=tools, **options) as agent:
        assert (await agent.run('go')).output == 'no'
    assert list(tmp_path.iterdir()) == []


async def test_a_subagent_on_the_same_files_can_ask_for_a_change(tmp_path: Path) -> None:
    replies = [code("await delegate('write')"), code("final_answer(write_file('x', 'new'))"), code('final_answer(1)')]
    model, asked = ScriptedModel(replies), list[str]()

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.tool)
        return True

    options: dict[str, Any] = {'workspace': tmp_path, 'helpers': True, 'journal': 'off'}
    async with Agent(model, tools=[Files(needs_approval=True)], approve=approve, **options) as agent:
        await agent.run('go')
    assert 'call write_file or update_file' in sent(model, 1)
    assert 'def write_file(' in sent(model, 1)
    assert (asked, (tmp_path / 'x').read_text()) == (['write_file'], 'new')


@pytest.mark.parametrize(
    ('files', 'told'), [('read_only', 'Files are read-only for your code.'), ('own', 'which has no files yet.')]
)
async def test_a_subagent_is_told_how_it_may_use_its_own_files(files: SiblingFiles, told: str, tmp_path: Path) -> None:
    (tmp_path / 'x').touch()
    model = ScriptedModel(
        [code("await delegate('look', 'other')"), code("final_answer('seen')"), code('final_answer(1)')]
    )
    helpers = {'other': Helper('Looks.', files=files)}
    tools = [Files(needs_approval=True)]
    async with Agent(model, tools=tools, helpers=helpers, workspace=tmp_path, approve=lambda _: True) as agent:
        await agent.run('go')
    assert sent(model, 1).endswith(told)
    assert 'write_file' not in sent(model, 1)


async def test_code_without_files_is_pointed_to_its_functions(tmp_path: Path) -> None:
    (tmp_path / 'x').touch()
    model = ScriptedModel([code("open('x')"), code('final_answer(read_file("x"))')])
    async with Agent(model, tools=[Files(tmp_path)]) as agent:
        await agent.run('go')
    assert '(no files are shared with your code: use the data and the functions that you have)' in sent(model, 1)


@pytest.mark.one_protocol
async def test_no_subagent_is_a_way_around_where_the_agent_itself_writes_no_code(tmp_path: Path) -> None:
    (tmp_path / 'x').write_text('good')
    tools = [Files(tmp_path, needs_approval=True, side='model')]
    options: dict[str, Any] = {'helpers': {'code': Helper('helps', tools=[])}, 'python': False, 'journal': 'off'}
    call = FunctionCall(id='1', name='delegate', arguments='{"task": "write"}')
    replies = [Reply(text='', calls=(call,)), code("open('x', 'w').write('bad')"), code("final_answer('no')"), 'done']
    async with Agent(ScriptedModel(replies, functions=True), tools=tools, workspace=tmp_path, **options) as agent:
        assert (await agent.run('go')).output == 'done'
    assert (tmp_path / 'x').read_text() == 'good'
    async with (
        await Sandbox.create(workspace=tmp_path) as sandbox,
        Agent(ScriptedModel([], functions=True), tools=tools, sandbox=sandbox, **options) as agent,
    ):
        with pytest.raises(AgentError, match="in the sandbox 'main' can change them without"):
            await agent.run('go')


@pytest.mark.one_protocol
async def test_tools_taken_out_of_their_toolset_ask_too(tmp_path: Path) -> None:
    taken = [tool for tool in Files(needs_approval=True).tools if tool.name in ('read_file', 'write_file')]
    for tools in (taken, [Toolset('some', taken)]):
        script = code("try:\n    open('x', 'w')\nexcept OSError as error:\n    final_answer(str(error))")
        async with Agent(ScriptedModel([script]), tools=tools, workspace=tmp_path, journal='off') as agent:
            assert 'not permitted' in (await agent.run('go')).unwrap()
    assert list(tmp_path.iterdir()) == []
