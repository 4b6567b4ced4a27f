"""The toolset `shell`: commands run inside the sandbox, through gates and journal like every tool."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from habilis.agent import Agent
from habilis.core.errors import AgentError, JournalError, ToolCallError, ToolDenied
from habilis.core.limits import Limits
from habilis.models import ScriptedModel
from habilis.models.contract import FunctionCall, Reply
from habilis.sandbox import Sandbox, backends
from habilis.sandbox.contract import Guest, GuestSpec
from habilis.sandbox.host.pipe_guest import PipeGuest
from habilis.tools import ApprovalRequest, CommandPolicy, Deny, GateCall, Shell, Toolbox
from tests.agent.hooks.watching import code
from tests.cases import each_case
from tests.journal.faults import PowerCut
from tests.waiting import until


class ProcessBackend:
    """A plain process, not isolated: what a backend with processes is to `bash`."""

    isolation = 'none'
    has_processes = True

    def start(self, spec: GuestSpec) -> Guest:
        places = {mount.target: str(mount.source) for mount in spec.mounts}
        command = [sys.executable, '-m', 'habilis.sandbox.guest', json.dumps({'places': places})]
        return PipeGuest(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))


@pytest.fixture(autouse=True, scope='module')
def _registered() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    backends.register('plain', ProcessBackend)
    yield
    backends.unregister('plain')


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncGenerator[Sandbox]:
    async with await Sandbox.create('plain', workspace=tmp_path, limits=Limits(seconds=20)) as made:
        yield made


async def bash(sandbox: Sandbox, *arguments: object, shell: Shell | None = None, **more: object) -> str:
    """What `bash` returns to code that calls it."""
    toolbox = Toolbox([shell or Shell()], sandbox=sandbox)
    call = f'bash(*{arguments!r}, **{more!r})'
    cell = await sandbox.run(call, tools=toolbox.functions())
    assert cell.ok, cell.error
    return str(cell.value)


COMMANDS = {
    'echo hello': 'hello\n',
    "printf 'b\\na\\n' | sort | head -1": 'a\n',
    """echo "it's" '"so"' $((1 + 2))""": 'it\'s "so" 3\n',
    'cat <<EOF\none $HOME_X\ntwo\nEOF': 'one \ntwo\n',
    "cat <<'EOF'\n$(not run)\nEOF": '$(not run)\n',
    'x=1\nif [ $x = 1 ]; then\n  echo yes\nfi': 'yes\n',
    'for i in 1 2; do echo $i; done': '1\n2\n',
    'true': '',
    'cat': '',
    'exit 3': '[exit code 3]',
    'echo out; echo err >&2; false': 'out\n[stderr]\nerr\n[exit code 1]',
    'echo warn >&2': '[stderr]\nwarn',
    'kill -9 $$': '[exit code 137]\n[tip: it was killed, perhaps because of its memory: work on less at a time]',
    "printf '\\377\\0x'": '\ufffd\0x',
}


async def test_d1_commands(sandbox: Sandbox) -> None:
    assert {command: await bash(sandbox, command) for command in COMMANDS} == COMMANDS


async def test_d1_d3_folders(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / 'a' / 'b').mkdir(parents=True)
    assert await bash(sandbox, 'pwd') == f'{tmp_path}\n', 'that of the code'
    shell = Shell(workdir='a')
    assert await bash(sandbox, 'basename $PWD', shell=shell) == 'a\n'
    assert await bash(sandbox, 'basename $PWD', workdir='a/b', shell=shell) == 'b\n'
    shell.workdir = 'a/b'
    assert await bash(sandbox, 'basename $PWD', shell=shell) == 'b\n'
    missing = 'missing: No such file or directory\n[exit code 126]\n[tip: there is no missing here: look with ls'
    assert missing in await bash(sandbox, 'pwd', workdir='missing')


async def test_d1_a_command_that_takes_too_long_is_stopped_with_all_it_started(sandbox: Sandbox) -> None:
    said = await bash(sandbox, 'echo begun; (sleep 60; echo never) | cat', timeout=0.5)
    assert said == 'begun\n[stopped after 0.5 s]'


async def test_a_command_ends_before_its_cell_does(tmp_path: Path) -> None:
    async with await Sandbox.create('plain', workspace=tmp_path, limits=Limits(seconds=5)) as sandbox:
        said = await bash(sandbox, 'sleep 60')
    assert 'because the time of the cell is over: split it, or raise Limits(seconds=…)' in said


async def test_a_process_in_the_background_does_not_hold_the_command(sandbox: Sandbox, tmp_path: Path) -> None:
    assert await bash(sandbox, 'sleep 30 & echo $!') != ''
    await bash(sandbox, '(sleep 0.2; echo done > x) >/dev/null 2>&1 &')
    assert await bash(sandbox, 'while [ ! -s x ]; do sleep 0.05; done; cat x') == 'done\n', 'it lives on'
    await bash(sandbox, 'pkill -P $PPID sleep || true')


async def test_d11_long_output_keeps_head_and_tail_and_says_what_is_left_out(sandbox: Sandbox) -> None:
    said = await bash(sandbox, 'seq 100000; seq 5 >&2')
    assert said.startswith('1\n2\n3\n')
    assert '[558,895 of 588,895 bytes left out here]' in said
    assert '\n99999\n100000\n[stderr]\n1\n' in said


async def test_variables_and_other_tools_are_there_around_a_command(sandbox: Sandbox) -> None:
    def double(x: int) -> int:
        return 2 * x

    toolbox = Toolbox([Shell(), double], sandbox=sandbox)
    script = "x = bash('echo 4')\ny = double(int(x))\nz = bash(f'echo {y}')\n(y, z, [c for c in bash('seq 2').split()])"
    cell = await sandbox.run(script, tools=toolbox.functions())
    assert cell.value == (8, '8\n', ['1', '2'])
    assert [call.tool for call in cell.calls] == ['bash', 'double', 'bash', 'bash']
    assert cell.calls[0].arguments == {'command': 'echo 4'}


async def test_d14_d15_gates_and_people_decide_about_commands(sandbox: Sandbox, tmp_path: Path) -> None:
    asked: list[object] = []

    def gate(call: GateCall) -> Deny | None:
        return Deny('no rm here') if 'rm' in str(call.arguments['command']) else None

    def person(request: ApprovalRequest) -> bool:
        asked.append(request.arguments['command'])
        return False

    (tmp_path / 'x').touch()
    gated = Toolbox([Shell()], sandbox=sandbox, gates=[gate])
    cell = await sandbox.run("bash('rm x')", tools=gated.functions())
    assert cell.error is not None
    assert 'bash was not called: no rm here' in str(cell.error)
    assert (await sandbox.run("bash('echo fine')", tools=gated.functions())).value == 'fine\n'
    watched = Toolbox([Shell(needs_approval=True)], sandbox=sandbox, approve=person)
    cell = await sandbox.run("bash('touch y')", tools=watched.functions())
    assert 'the user said no' in str(cell.error)
    assert asked == ['touch y']
    assert [file.name for file in tmp_path.iterdir()] == ['x']


async def test_a_cell_that_is_cancelled_during_a_command_leaves_the_sandbox_usable(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    toolbox = Toolbox([Shell()], sandbox=sandbox)
    running = asyncio.create_task(sandbox.run("bash('touch begun; sleep 60')", tools=toolbox.functions()))
    await until((tmp_path / 'begun').exists)
    sandbox.cancel()
    cell = await running
    assert cell.error is not None
    assert cell.error.kind == 'cancelled'
    assert await bash(sandbox, 'echo again') == 'again\n'
    assert [call.error for call in toolbox.take_records()] == ['SandboxError: the sandbox ended during the command']


async def test_bash_without_a_sandbox_with_processes_says_what_to_use() -> None:
    with pytest.raises(AgentError, match='needs a sandbox that starts processes: use Agent'):
        Agent(ScriptedModel([]), tools=[Shell()])
    async with await Sandbox.create() as sandbox:
        with pytest.raises(AgentError, match='that starts processes'):
            Agent(ScriptedModel([]), tools=[Shell()], sandbox=sandbox)
        with pytest.raises(ToolCallError, match='this sandbox cannot start processes'):
            await Toolbox([Shell()], sandbox=sandbox).call('bash', 'ls')
    with pytest.raises(ToolCallError, match='there is none here'):
        await Toolbox([Shell()]).call('bash', 'ls')


async def test_bash_is_called_by_the_model_too(tmp_path: Path) -> None:
    call = FunctionCall(id='1', name='bash', arguments='{"command": "echo hi > x; cat x"}')
    model = ScriptedModel([Reply(calls=(call,), finish='calls'), 'Done.'], functions=True)
    shell = Shell(side='model')
    async with Agent(model, tools=[shell], python=False, sandbox='plain', workspace=tmp_path, journal='off') as agent:
        result = await agent.run('go')
    assert (tmp_path / 'x').read_text() == 'hi\n'
    assert 'hi' in str(result.messages)


async def test_commands_of_a_resumed_run_are_not_repeated(tmp_path: Path) -> None:
    store = PowerCut()
    model = ScriptedModel([code("final_answer(bash('echo once >> x; wc -l < x'))")])
    async with Agent(model, tools=[Shell()], sandbox='plain', workspace=tmp_path, journal=store) as agent:
        with pytest.raises(JournalError):
            await agent.run('go', run_id='run-1')
    store.on = False
    async with Agent(ScriptedModel([]), tools=[Shell()], sandbox='plain', workspace=tmp_path, journal=store) as agent:
        assert str((await agent.resume('run-1')).output).strip() == '1'
    assert (tmp_path / 'x').read_text() == 'once\n'


TIPS = {
    'no-such-command': '[tip: no-such-command is not installed here; use another command, or Python]',
    'cat missing.txt': '[tip: there is no missing.txt here: look with ls',
    "ls 'also missing'": '[tip: there is no also missing here',
    "cd 'no where'": '[tip: there is no no where here',
    'python3 none.py': '/none.py here: look with ls',
    'python3 -c "open(\'x\')"': "No such file or directory: 'x'\n[exit code 1]",
    f': {"x" * 200_000}': 'Argument list too long\n[exit code 126]\n[tip: put the text into a file first',
    'touch s; ./s': '[tip: a script runs with `bash FILE`',
    'python3 -c "import no_such"': '[tip: the package no_such is not installed here]',
    'echo "open': 'is not closed]',
}


async def test_d16_a_failed_command_has_a_tip(sandbox: Sandbox) -> None:
    for command, tip in TIPS.items():
        assert tip in await bash(sandbox, command)


# Policy ---------------------------------------------------------------------------------------------------------------


@each_case(
    'command',
    [
        'rm -rf x',
        'echo $(rm -rf x)',
        'echo `rm -rf x`',
        'echo "a $(rm -rf x)"',
        'cat <<EOF\n$(rm x)\nEOF',
        'cat <(rm x)',
        'ls\nrm -rf x',
        'ls; rm x',
        'ls && rm x',
        'ls | rm x',
        'ls & rm x',
        'ls | (rm x)',
        '{ rm x; }',
        '! rm x',
        'if rm -rf x; then :; fi',
        'while rm x; do :; done',
        'for i in *; do rm $i; done',
        'case a in a) rm x;; esac',
        'f() { rm x; }; f',
        'x=$(rm y)',
        'echo ${x:-$(rm y)}',
        'find . -delete',
        'find . "-delete"',
        "find . -exec rm {} ';'",
        'X=-delete; find . $X',
        'awk \'BEGIN{system("id")}\'',
        'time rm x',
        'env rm x',
        'command rm x',
        'xargs rm',
        'eval rm x',
        'bash -c "rm x"',
        '. ./script',
        '"r"m x',
        'r""m x',
        '\\rm x',
        '$CMD x',
        '/bin/rm x',
        'PATH=. ls',
        'export LD_PRELOAD=x; ls',
        'git push',
        'git -c core.pager=x status',
        'echo "open',
        'sort -o x y',
        'cat <<EOF\n`rm x`\nEOF',
        'cat <<EOF\n$(ls) `rm x`\nEOF',
        'cat <<EOF\n\\\\`rm x`\nEOF',
        'echo `echo \\`rm x\\``',
        'echo "${x^^$(rm y)}"',
        "x='$(rm y)'; echo ${x@P}",
        'find . {-delete,}',
        'find . -{delete,print}',
        'x=e; find . -del${x}te',
        'find . "${x}-delete"',
        'find . `echo -delete`',
        "find . $'\\x2ddelete'",
        'sort -uo x y',
        'sort --outp=x y',
        'tree -ao x',
        'rg --hostname-bin=x y',
        'git diff --outpu=x',
        'git branch {-D,x}',
        'git branch -qD x',
        'git branch --del x',
        'git branch new',
        'export "LD_PRELOAD=x"; ls',
        'export $x; ls',
        'declare -n p=PATH; p=.; ls',
        'unset PATH; ls',
        'read PATH <<< .; ls',
        'printf -v PATH .; ls',
        'for PATH in .; do ls; done',
        ': ${BASH_ENV:=x}',
        'RIPGREP_CONFIG_PATH=x rg y',
        'ls;' * 1000,
        'cat <<A ' * 1000,
    ],
)
def test_d2_what_the_policy_refuses(command: str) -> None:
    with pytest.raises(ToolDenied, match='bash was not called: '):
        CommandPolicy(extra=['pytest']).check(command)


@each_case(
    'command',
    [
        'echo hi > out.txt',
        'git status',
        'git status --short | head -3',
        'pytest -q',
        'PYTEST_ADDOPTS=-q pytest tests && echo ok',
        'cat <<EOF > x\nrm -rf x\nEOF',
        'echo "rm -rf x"',
        "grep -rn 'rm -rf' . | sort | uniq -c",
        'for f in *.py; do wc -l "$f"; done',
        'if [ -f x ]; then cat x; fi',
        '[[ -d src ]] && ls src',
        'x=$(date); echo $x',
        'find . -name "*.py" -newer x',
        'cd src && ls',
        '# only a comment',
        "cat <<'EOF'\n`rm x` $(rm x)\nEOF",
        'echo "\\`ls\\`" \\$\\(',
        "find . -name '*' -o -name '*.{py,ts}'",
        'find "$dir/src" -type f',
        "sort -t$'\\t' -k2,2n data-{1,2}.txt | sort -rnu",
        'git diff $a..$b && git show HEAD@{1}',
        'git branch -a && git branch --show-current --sort=-committerdate',
        'git branch --contains HEAD',
        'date -Iseconds',
        'while IFS= read -r line; do echo "$line"; done < x',
        'export FOO=$x; declare -a y=(1 2); unset y',
        'echo ${PATH:-none} PATH; printf "%s" "$HOME"',
    ],
)
def test_d2_what_the_policy_allows(command: str) -> None:
    CommandPolicy(extra=['pytest']).check(command)


async def test_d2_extra_commands_wildcards_and_no_policy(sandbox: Sandbox, tmp_path: Path) -> None:
    CommandPolicy(allow=['git *', 'py*']).check('git push; pytest; git')
    CommandPolicy(allow=['*']).check('rm -rf x; "unclosed')
    CommandPolicy(extra=['find']).check('find . -delete')
    with pytest.raises(ToolDenied, match=r'rm is not an allowed command; allowed are ls$'):
        CommandPolicy(allow=['ls']).check('rm x')
    with pytest.raises(TypeError, match='lists of commands'):
        CommandPolicy(extra='pytest')
    (tmp_path / 'x').touch()
    toolbox = Toolbox([Shell(policy=CommandPolicy())], sandbox=sandbox)
    cell = await sandbox.run("bash('ls; rm x')", tools=toolbox.functions())
    assert 'rm is not an allowed command' in str(cell.error)
    assert (tmp_path / 'x').exists()
