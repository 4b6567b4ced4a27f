"""Variables that are described along with the cell that left them, which spares the agent a second request a step."""

from collections.abc import Callable

import pytest

from habilis.core.codec import Json
from habilis.sandbox import CodeRules
from habilis.sandbox.contract import Variable
from habilis.sandbox.host.cell_host import CellHost
from habilis.sandbox.host.interpreter import Interpreter, T
from habilis.sandbox.session import Sandbox
from tests.sandbox.hostile import KERNEL, assert_right, kind_of, prepare

CODE = [
    'x = 1',
    "x = 'a' * 1000\ny = b'ab'\nz = 1j",
    'import json\nx = [1, 2]\ny = {"a": x}\nz = (x,), {1}, frozenset()',
    'def f(x): return x\ng = lambda: 0',
    'x = 10 ** 5000',
    'x = 1\n1 / 0',
    'x = (',
    'class C: pass\nx = C()',
    'class L(list): pass\nx = L([1, 2, 3])',
    'x = type("S", (), {"shape": (2, 3)})()',
    'import collections, datetime\nx = collections.Counter("aab")\nd = datetime.date(2026, 1, 2)',
    'x = [object()]',
    '',
]


class Asked(list[str]):
    """The requests that were made beside the cells."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()
    request = Interpreter.request

    async def counted(
        self: Interpreter, body: dict[str, Json], host: CellHost, seconds: float, read: Callable[[dict[str, Json]], T]
    ) -> T:
        made.append(str(body['op']))
        return await request(self, body, host, seconds, read)

    monkeypatch.setattr(Interpreter, 'request', counted)
    return made


@pytest.mark.parametrize('code', CODE)
@pytest.mark.parametrize('rules', [None, CodeRules()], ids=['short way', 'with code rules'])
async def test_it_equals_the_description_that_is_requested(code: str, rules: CodeRules | None) -> None:
    async with await Sandbox.create(code_rules=rules) as along, await Sandbox.create(code_rules=rules) as apart:
        for cell in (code, 'more = 2', code):  # the first request of a sandbox goes another way than the later ones
            one, other = await along.run(cell, describe=True), await apart.run(cell)
            assert (one.stdout, one.text, one.ok) == (other.stdout, other.text, other.ok)
            assert await along.describe_variables() == await apart.describe_variables()


async def test_it_is_not_asked_for_again_until_something_changes(sandbox: Sandbox, asked: Asked) -> None:
    await sandbox.run('x = [1]\ndef f(): pass', describe=True)
    known = await sandbox.describe_variables()
    known.clear()  # theirs, not ours
    assert list(await sandbox.describe_variables()) == ['x', 'f']
    assert set(asked) <= {'save'}
    await sandbox.set_variables({'x': 'other'})
    changed = await sandbox.describe_variables()
    assert changed['x'] == Variable(name='x', type='str', size='5 characters', text="'other'")
    await sandbox.run('y = 1')
    assert 'y' in await sandbox.describe_variables()


def echo(text: str) -> str:
    """A tool."""
    return text


async def test_a_new_sandbox_is_asked_nothing_before_its_first_cell(asked: Asked) -> None:
    async with await Sandbox.create() as sandbox:
        assert await sandbox.describe_variables() == {}
        cell = await sandbox.run('echo("x")', tools=[echo], describe=True)
        assert (cell.value, asked) == ('x', [])
        await sandbox.run('y = 1', tools=[])
        assert asked == ['tools']
    async with await Sandbox.create(variables={'x': 1}) as sandbox:
        assert list(await sandbox.describe_variables()) == ['x']


async def test_after_the_first_cell_was_stopped_nothing_is_there_and_the_tools_are() -> None:
    async with await Sandbox.create() as sandbox:
        assert kind_of(await sandbox.run('y = 2\nwhile True: pass', seconds=0.2, tools=[echo], describe=True)) == 'time'
        assert await sandbox.describe_variables() == {}
        assert (await sandbox.run('echo("ab")', tools=[echo])).value == 'ab'


async def test_after_a_cell_that_was_stopped_the_variables_of_before_are_described(sandbox: Sandbox) -> None:
    await sandbox.run('x = 1', describe=True)
    assert kind_of(await sandbox.run('y = 2\nwhile True: pass', seconds=0.2, describe=True)) == 'time'
    assert list(await sandbox.describe_variables()) == ['x']


async def test_a_snapshot_that_is_loaded_is_described(sandbox: Sandbox) -> None:
    await sandbox.run('x = 1')
    saved = await sandbox.snapshot()
    await sandbox.run('del x\ny = 2', describe=True)
    await sandbox.load_snapshot(saved)
    assert list(await sandbox.describe_variables()) == ['x']


@pytest.mark.parametrize('does', ['exit(3)', 'print("unseen")', '1 / 0', 'globals().update(y=1)', 'echo()'])
async def test_no_code_of_the_user_runs_for_it_within_the_cell(does: str) -> None:
    calls: list[int] = []

    def echo() -> None:
        calls.append(1)

    sneaky = f'class X:\n    @property\n    def shape(self):\n        {does}\nx = X()\nprint("seen")\n5'
    async with await Sandbox.create(tools=[echo]) as sandbox:
        cell = await sandbox.run(sneaky, describe=True)
    assert (cell.ok, cell.value, cell.stdout, cell.calls, calls) == (True, 5, 'seen\n', (), [])


@pytest.mark.parametrize('names', ['5', '[]', '{"x": 5}', '{"x": [1, 2]}', '{"x": [1, 2, 3, 4]}', '"x"'])
async def test_a_forged_description_makes_the_cell_broken_and_the_sandbox_new(sandbox: Sandbox, names: str) -> None:
    await prepare(sandbox)
    forged = f'{{"names": {names}}}'
    await sandbox.run(KERNEL + f'type(kernel).enter = lambda self, message: {forged!r}')
    assert kind_of(await sandbox.run('1', describe=True)) == 'broken'
    await assert_right(sandbox)


async def test_an_unrequested_description_is_ignored(sandbox: Sandbox, asked: Asked) -> None:
    await sandbox.run(KERNEL + 'kernel.run_cell = lambda code, rules: {"names": {"lie": ["int", "", "1"]}}')
    await sandbox.run('1')
    assert 'lie' not in await sandbox.describe_variables()
    assert 'names' in asked
