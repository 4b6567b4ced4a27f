"""The life of a sandbox: how it is made, stopped, cancelled and closed, and what its settings do."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from habilis import CodeRules, Limits, Sandbox
from habilis.core.errors import BackendNotFound, SandboxClosed, SandboxError
from habilis.sandbox.contract import Cell, PythonTarget
from habilis.sandbox.wasm.backend import WasmBackend


def kind(cell: Cell) -> str | None:
    return cell.error.kind if cell.error else None


# Made -----------------------------------------------------------------------------------------------------------------


async def test_a_backend_or_setting_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(BackendNotFound, match=r"no sandbox backend called 'vasm'; there is .*wasm"):
        await Sandbox.create('vasm')
    with pytest.raises(TypeError, match="no setting 'limit'; it has limits, tools, "):
        await Sandbox.create(limit=3)  # pyright: ignore[reportCallIssue]


async def test_a_backend_is_asked_for_its_python_only_for_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(_backend: object) -> PythonTarget:
        raise LookupError

    monkeypatch.setattr(WasmBackend, 'python', property(ask), raising=False)
    async with await Sandbox.create('wasm') as sandbox:
        assert (await sandbox.run('1 + 1')).value == 2
        with pytest.raises(LookupError):
            await sandbox.install('attrs==25.3')


async def test_a_variable_that_is_not_plain_data_is_named() -> None:
    with pytest.raises(SandboxError, match=r"the variable 'x' cannot go into the sandbox: \['a'\]\[1\] is not plain"):
        await Sandbox.create(variables={'x': {'a': [1, object()]}})
    async with await Sandbox.create() as sandbox:
        with pytest.raises(SandboxError, match="the variable 'f'"):
            await sandbox.set_variables({'f': print})
        for name in ('a b', '', '1', 'x.y'):
            with pytest.raises(SandboxError, match='is not a valid variable name'):
                await sandbox.set_variables({name: 1})
        await sandbox.run('x = [1, object()]')
        with pytest.raises(SandboxError, match=r'x \[1\] is not plain data but an object'):
            await sandbox.get_variables('x')
        assert await sandbox.get_variables() == {}


@pytest.mark.parametrize('target', ['data', '/', '/workspace', '/workspace/x', '/packages', '/a/../b', ''])
async def test_a_mount_must_have_a_place_of_its_own(target: str, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match='cannot mount at'):
        await Sandbox.create(mounts={target: tmp_path})


async def test_a_mount_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match='does not exist'):
        await Sandbox.create(mounts={'/data': tmp_path / 'missing'})


async def test_environment_variables_are_those_that_were_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOST_SECRET', 'hunter2')
    async with await Sandbox.create(env={'TOKEN': 'a=b ü', 'EMPTY': ''}) as sandbox:
        code = "import os\nos.environ['TOKEN'], os.getenv('EMPTY'), 'HOST_SECRET' in os.environ"
        assert (await sandbox.run(code)).value == ('a=b ü', '', False)
    for name in ('', 'A=B', 'A\0'):
        with pytest.raises(SandboxError, match='environment variable'):
            await Sandbox.create(env={name: 'x'})


async def test_input_is_answered_by_a_function_or_from_lines() -> None:
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return prompt.upper()

    async with await Sandbox.create(input=answer) as sandbox:
        assert (await sandbox.run("input('name? '), input()")).value == ('NAME? ', '')
        assert asked == ['name? ', '']
    async with await Sandbox.create(input=['one']) as sandbox:
        cell = await sandbox.run('print(input())\ninput()')
        assert (cell.stdout, kind(cell)) == ('one\n', 'exception')
        assert cell.error is not None
        assert (cell.error.type, cell.error.message) == ('EOFError', 'no more lines of input were given to the sandbox')


# Closed ---------------------------------------------------------------------------------------------------------------


async def test_closing_twice_is_no_harm_and_a_closed_sandbox_says_so(sandbox: Sandbox) -> None:
    await asyncio.gather(sandbox.close(), sandbox.close())
    await sandbox.close()
    assert sandbox.closed
    assert sandbox.cancel() is False
    for use in (sandbox.run('1'), sandbox.set_variables({}), sandbox.get_variables(), sandbox.fork()):
        with pytest.raises(SandboxClosed, match='this sandbox is closed'):
            await use


@pytest.mark.parametrize('code', ['while True: pass', 'import time\ntime.sleep(60)', 'await wait()'])
async def test_closing_ends_what_runs_and_waiting_callers_get_an_error(code: str) -> None:
    async def wait() -> None:
        await asyncio.sleep(60)

    sandbox = await Sandbox.create(tools=[wait])
    running = asyncio.create_task(sandbox.run(f"print('begun')\n{code}"))
    waiting = asyncio.create_task(sandbox.run('1'))
    await asyncio.sleep(0.1)
    start = time.monotonic()
    await sandbox.close()
    assert time.monotonic() - start < 30
    cell = await running
    assert (kind(cell), cell.stdout) == ('cancelled', 'begun\n')
    with pytest.raises(SandboxClosed):
        await waiting


async def test_closing_does_not_wait_for_a_save_that_takes_for_ever() -> None:
    sandbox = await Sandbox.create(limits=Limits(seconds=300))
    slow = 'class Slow:\n    def __reduce__(self):\n        while True: pass\nslow = Slow()'
    assert (await sandbox.run(slow)).ok
    await asyncio.sleep(0.05)
    start = time.monotonic()
    await sandbox.close()
    assert time.monotonic() - start < 30


# Cancelled ------------------------------------------------------------------------------------------------------------


async def test_cancelling_what_does_not_run_does_nothing(sandbox: Sandbox) -> None:
    assert sandbox.cancel() is False
    assert (await sandbox.run('x = 1\nx')).value == 1
    assert sandbox.cancel() is False
    assert (await sandbox.run('x')).value == 1


@pytest.mark.parametrize('times', [1, 2, 5])
async def test_a_cancelled_task_leaves_the_sandbox_usable(sandbox: Sandbox, times: int) -> None:
    await sandbox.run('x = [1]')
    running = asyncio.create_task(sandbox.run('x.append(2)\nwhile True: pass'))
    await asyncio.sleep(0.1)
    for _ in range(times):
        running.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await sandbox.run('x')).value == [1]


async def test_a_task_cancelled_again_and_again_while_a_tool_blocks_never_shares_its_interpreter() -> None:
    entered = threading.Event()

    def block() -> None:
        entered.set()
        time.sleep(0.5)

    async with await Sandbox.create(tools=[block]) as sandbox:
        await sandbox.run('x = 1')
        running = asyncio.create_task(sandbox.run('x = 2\nblock()\nx = 3'))
        await asyncio.to_thread(entered.wait)
        running.cancel()
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await sandbox.run('x')).value == 1  # while the tool still blocks the other one
        await asyncio.sleep(0.6)
        assert (await sandbox.run('x')).value == 1


async def test_a_timeout_around_a_cell_ends_it(sandbox: Sandbox) -> None:
    await sandbox.run('x = 1')
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await sandbox.run('x = 2\nimport time\ntime.sleep(60)')
    assert (await sandbox.run('x')).value == 1


async def test_a_task_that_is_cancelled_while_it_waits_does_not_affect_others(sandbox: Sandbox) -> None:
    running = asyncio.create_task(sandbox.run("import time\ntime.sleep(0.3)\n'done'"))
    await asyncio.sleep(0.05)
    waiting = asyncio.create_task(sandbox.run('never = 1'))
    await asyncio.sleep(0.05)
    waiting.cancel()
    assert (await running).value == 'done'
    assert (await sandbox.run("'never' in globals()")).value is False


# Limits ---------------------------------------------------------------------------------------------------------------


async def test_one_cell_may_have_less_time_but_not_more() -> None:
    async with await Sandbox.create(limits=Limits(seconds=0.5)) as sandbox:
        for seconds in (0.1, 60):
            start = time.monotonic()
            cell = await sandbox.run('while True: pass', seconds=seconds)
            limit = min(seconds, 0.5)
            assert kind(cell) == 'time'
            assert cell.error is not None
            assert cell.error.message == f'the time limit of {limit:g} s was reached'
            assert time.monotonic() - start >= limit
        for seconds in (0, -1, float('nan')):
            with pytest.raises(ValueError, match='seconds must be greater than 0'):
                await sandbox.run('1', seconds=seconds)


async def test_the_alarm_of_an_earlier_cell_does_not_end_a_later_one_that_has_time_left() -> None:
    async def ring() -> None:
        sandbox._interpreter._expire()  # pyright: ignore[reportPrivateUsage]

    async with await Sandbox.create(tools=[ring]) as sandbox:
        assert (await sandbox.run('1 + 1', seconds=5)).value == 2
        assert (await sandbox.run('await ring()\n3')).value == 3
        assert kind(await sandbox.run('await ring()\nwhile True: pass', seconds=0.2)) == 'time'


async def test_a_tool_that_is_stuck_on_the_host_ends_the_cell_and_not_the_sandbox() -> None:
    stuck = threading.Event()

    def block() -> None:
        stuck.wait(60)

    async with await Sandbox.create(tools=[block], limits=Limits(seconds=0.3)) as sandbox:
        await sandbox.run('x = 1')
        start = time.monotonic()
        cell = await sandbox.run("print('calling')\nx = 2\nblock()")
        assert (kind(cell), cell.stdout) == ('time', 'calling\n')
        assert time.monotonic() - start < 30
        assert (await sandbox.run('x')).value == 1
        stuck.set()
        await asyncio.sleep(0.1)
        assert (await sandbox.run('x')).value == 1


async def test_without_checkpoints_a_stopped_sandbox_comes_back_empty_and_says_so() -> None:
    async with await Sandbox.create(checkpoints=False, variables={'given': 1}) as sandbox:
        await sandbox.run('x = 1')
        cell = await sandbox.run('while True: pass', seconds=0.2)
        assert cell.error is not None
        assert 'its variables are lost (checkpoints=False)' in cell.error.message
        assert (await sandbox.run("given, 'x' in globals()")).value == (1, False)


async def test_a_share_of_the_core_slows_a_busy_cell() -> None:
    async with await Sandbox.create(limits=Limits(seconds=5, cpu=0.25)) as sandbox:
        await sandbox.run('1')
        wall, used = time.monotonic(), time.process_time()
        cell = await sandbox.run('import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass')
        assert cell.ok
        assert (time.process_time() - used) / (time.monotonic() - wall) < 0.6


# Policies -------------------------------------------------------------------------------------------------------------

REFUSED = [
    "__builtins__['__import__']('subprocess')",
    "getattr(__builtins__, 'ex' + 'ec')",
    '().__class__.__base__.__subclasses__()',
    'from os import system',
    "import importlib\nimportlib.import_module('os')",
    "eval('1')",
    "import base64\nbase64.b64decode('aW1wb3J0')",
]
ALLOWED = [
    "import re\nre.compile('a')",
    'import sys',
    "class D:\n    def eval(self, x): return x\ndf = D()\ndf.eval('a > 1')",
    "'{}'.format(1)",
    "','.join(['a', 'b'])",
    'class T:\n    def join(self): pass\nt = T()\nt.join()',
    "ord('a')",
    'import math\nmath.pi',
]
STRICT = CodeRules(imports=('re', 'sys', 'math', 'importlib', 'base64', 'json.*'), calls=True, strings=True)


async def test_code_rules_refuse_what_they_must_and_allow_what_they_must() -> None:
    async with await Sandbox.create(code_rules=STRICT) as sandbox:
        for code in REFUSED:
            cell = await sandbox.run(f"{code}\nprint('reached')")
            assert (kind(cell), cell.stdout) == ('code_rules', ''), code
        for code in ALLOWED:
            cell = await sandbox.run(code)
            assert cell.ok, (code, cell.error)
        assert (await sandbox.run('import json.decoder\njson.decoder.__name__')).value == 'json.decoder'


async def test_an_import_that_is_only_known_at_run_time_is_refused_too() -> None:
    async with await Sandbox.create(code_rules=CodeRules(imports=('math', 'importlib'))) as sandbox:
        for code in ("__import__('sub' + 'process')", "import importlib\nname = 'os'\nimportlib.import_module(name)"):
            assert kind(await sandbox.run(code)) == 'code_rules', code
        assert (await sandbox.run("__import__('ma' + 'th').floor(1.5)")).value == 1


async def test_code_rules_can_be_changed_between_cells_and_go_to_the_fork(sandbox: Sandbox) -> None:
    assert (await sandbox.run("eval('1 + 1')")).value == 2
    sandbox.code_rules = CodeRules(calls=True)
    assert kind(await sandbox.run("eval('1 + 1')")) == 'code_rules'
    async with await sandbox.fork() as twin:
        assert kind(await twin.run("eval('1 + 1')")) == 'code_rules'
    sandbox.code_rules = CodeRules(calls=True, allow=('eval',))
    assert (await sandbox.run("eval('1 + 1')")).value == 2
    sandbox.code_rules = None
    assert (await sandbox.run("exec('y = 3')\ny")).value == 3


async def test_two_who_share_a_sandbox_use_each_others_files_and_variables() -> None:
    written = asyncio.Event()

    async def writer(shared: Sandbox) -> object:
        cell = await shared.run("open('notes.txt', 'w').write('41')\nadd = lambda n: n + 1\n'written'")
        written.set()
        return cell.value

    async def reader(shared: Sandbox) -> object:
        await written.wait()
        return (await shared.run("add(int(open('notes.txt').read()))")).value

    async with await Sandbox.create(workspace=True) as sandbox:
        assert await asyncio.gather(reader(sandbox), writer(sandbox)) == [42, 'written']
