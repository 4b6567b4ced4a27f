"""A snapshot brings the variables back, names what it cannot, and is refused when it is not whole."""

import asyncio
import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habilis import Limits, Sandbox
from habilis.core.errors import SandboxClosed, SnapshotError
from habilis.sandbox.contract import Cell
from habilis.sandbox.snapshot import MAGIC, SavedVariables, from_bytes, to_bytes
from tests.core.plain import plain, shape
from tests.sandbox.survivors import Survivor, survivors

# The bytes ------------------------------------------------------------------------------------------------------------

CHECKPOINT = SavedVariables(state='AAECAw==', python='cpython 3.14', cells=7, lost=('a', 'b'))


def forge(header: object, state: bytes = b'') -> bytes:
    """A snapshot whose checksum is right and whose content is not."""
    content = (header if isinstance(header, bytes) else json.dumps(header).encode()) + b'\n' + state
    return MAGIC + b'%08x' % zlib.crc32(content) + b'\n' + content


def test_a_checkpoint_is_bytes_and_back() -> None:
    snapshot = to_bytes(CHECKPOINT)
    assert isinstance(snapshot, bytes)
    assert snapshot.lost == ('a', 'b')
    assert snapshot.startswith(b'habilis snapshot 1\n')
    assert from_bytes(bytes(snapshot)) == CHECKPOINT


def test_damage_of_any_byte_is_found() -> None:
    whole = bytes(to_bytes(CHECKPOINT))
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        with pytest.raises(SnapshotError):
            from_bytes(bytes(damaged))
    for length in range(len(whole)):
        with pytest.raises(SnapshotError):
            from_bytes(whole[:length])
    with pytest.raises(SnapshotError, match='damaged'):
        from_bytes(whole + b'\0')


@given(st.binary() | st.binary().map(lambda data: MAGIC + data))
def test_bytes_that_are_no_snapshot_are_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        from_bytes(data)


def test_a_snapshot_of_another_version_is_refused_with_advice() -> None:
    with pytest.raises(SnapshotError, match='another version of Habilis; run that version'):
        from_bytes(b'habilis snapshot 2\n{}')


@pytest.mark.parametrize(
    'header',
    [
        {},
        [],
        None,
        {'python': 'x', 'cells': 'many', 'lost': []},
        {'python': 'x', 'cells': float('inf'), 'lost': []},
        {'python': 'x', 'cells': 1, 'lost': 3},
        b'[' * 100_000,
        b'\xff',
    ],
    ids=lambda header: str(header)[:30],
)
def test_a_forged_header_is_refused(header: object) -> None:
    with pytest.raises(SnapshotError, match='malformed'):
        from_bytes(forge(header))


async def test_a_snapshot_of_another_python_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r'made by cpython 2\.7, this sandbox runs cpython 3\.'):
        await Sandbox.restore(forge({'python': 'cpython 2.7', 'cells': 1, 'lost': []}, b'state'))


async def test_a_state_that_cannot_be_read_is_refused() -> None:
    async with await Sandbox.create() as sandbox:
        python = from_bytes(await sandbox.snapshot()).python
    for state in (b'', b'not a pickle', b'cos\nsystem\n(S"id"\ntR.'):
        with pytest.raises(SnapshotError, match='cannot be restored here'):
            await Sandbox.restore(forge({'python': python, 'cells': 1, 'lost': []}, state))


# What survives --------------------------------------------------------------------------------------------------------


def greet(name: str) -> str:
    """A tool."""
    return f'hello {name}'


async def restored(made: str, check: str) -> tuple[Cell, tuple[str, ...]]:
    """Run one cell, snapshot, restore, run another."""
    async with await Sandbox.create(tools=[greet], limits=Limits(seconds=10)) as sandbox:
        cell = await sandbox.run(made)
        assert cell.ok, cell.error
        snapshot = await sandbox.snapshot()
    async with await Sandbox.restore(bytes(snapshot), tools=[greet], limits=Limits(seconds=10)) as again:
        return await again.run(check), snapshot.lost


@pytest.mark.parametrize('case', survivors(), ids=lambda case: case.name)
async def test_it_survives(case: Survivor) -> None:
    cell, lost = await restored(case.made, case.check)
    assert cell.error is None, cell.error.traceback
    assert cell.value == case.value
    assert lost == ()


async def test_a_function_calls_the_new_one_of_a_name() -> None:
    cell, _ = await restored('def g(): return 1\ndef f(): return g()', 'def g(): return 2\nf()')
    assert cell.value == 2


async def test_a_traceback_and_getsource_show_the_lines_of_functions_from_before() -> None:
    made = 'def broken():\n    return 1 / 0  # this line'
    cell, _ = await restored(made, 'broken()')
    assert cell.error is not None
    assert 'return 1 / 0  # this line' in cell.error.traceback
    cell, _ = await restored(made, 'import inspect\ninspect.getsource(broken)')
    assert str(cell.value).strip() == made


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(['a', 'b', 'c', 'ü', '_x']), plain, max_size=4))
def test_any_plain_variables_survive(variables: dict[str, object]) -> None:
    async def there_and_back() -> dict[str, object]:
        async with await Sandbox.create(variables=variables) as sandbox:
            snapshot = await sandbox.snapshot()
        async with await Sandbox.restore(snapshot) as again:
            return await again.get_variables()

    back = asyncio.run(there_and_back())
    assert back.keys() == variables.keys()
    assert {name: shape(value) for name, value in back.items()} == {
        name: shape(value) for name, value in variables.items()
    }


# What does not --------------------------------------------------------------------------------------------------------

UNSAVEABLE = {
    'generators': 'bad = (i for i in range(3))',
    'coroutines': 'async def f(): pass\nbad = f()\nbad.close()',
    'open files': 'open("/workspace/x", "w").close()\nbad = open("/workspace/x")',
    'frames': 'import sys\nbad = sys._getframe()',
    'type aliases': 'type bad = list[int]',
    'objects known by name': 'class S:\n    def __reduce__(self): return "bad"\nbad = S()',
    'locks': 'import threading\nbad = threading.Lock()',
    'objects that refuse': 'class R:\n    def __reduce__(self): raise RuntimeError\nbad = R()',
    'objects that exit': 'class R:\n    def __reduce__(self): raise SystemExit\nbad = R()',
    'deep chains': 'bad = None\nfor _ in range(200_000): bad = [bad]',
    'something hidden inside': 'bad = {"a": [1, {"b": (i for i in [])}]}',
}


@pytest.mark.parametrize('made', UNSAVEABLE.values(), ids=UNSAVEABLE.keys())
async def test_what_cannot_be_saved_is_named_and_the_rest_is_kept(made: str) -> None:
    async with await Sandbox.create(workspace=True, limits=Limits(seconds=10)) as sandbox:
        await sandbox.run(f'good = [1]\nalias = good\n{made}')
        snapshot = await sandbox.snapshot()
        assert snapshot.lost == ('bad',)
        stopped = await sandbox.run('while True: pass', seconds=0.2)
        assert stopped.lost == sandbox.lost == ('bad',)
        assert (await sandbox.run("good is alias, 'bad' in globals()")).value == (True, False)


async def test_a_snapshot_that_needs_a_tool_says_which() -> None:
    async with await Sandbox.create(tools=[greet]) as sandbox:
        await sandbox.run('say = greet')
        snapshot = await sandbox.snapshot()
    with pytest.raises(SnapshotError, match="uses the tool 'greet'"):
        await Sandbox.restore(snapshot)


# When -----------------------------------------------------------------------------------------------------------------


async def test_an_untouched_sandbox_can_be_saved_and_forked() -> None:
    async with await Sandbox.create(variables={'x': 1}) as sandbox, await sandbox.fork() as twin:
        assert (await twin.run('x')).value == 1
        async with await Sandbox.restore(await sandbox.snapshot()) as again:
            assert (await again.run('x')).value == 1


@pytest.mark.parametrize('checkpoints', [True, False])
async def test_a_snapshot_and_a_fork_are_of_now(checkpoints: bool) -> None:
    async with await Sandbox.create(checkpoints=checkpoints) as sandbox:
        for number in range(3):
            await sandbox.run(f'x = {number}\ny = [x]')
            async with await sandbox.fork() as twin, await Sandbox.restore(await sandbox.snapshot()) as again:
                assert (await twin.run('x, y')).value == (await again.run('x, y')).value == (number, [number])
        await sandbox.set_variables({'x': 'set'})
        async with await sandbox.fork() as twin:
            assert (await twin.run('x')).value == 'set'


async def test_cells_continue_counting_after_a_restore() -> None:
    async with await Sandbox.create() as sandbox:
        for _ in range(3):
            await sandbox.run('f = lambda: 1')
        snapshot = await sandbox.snapshot()
    async with await Sandbox.restore(snapshot) as again:
        error = (await again.run('1/0')).error
    assert error is not None
    assert '<cell 4>' in error.traceback


async def test_a_closed_sandbox_cannot_be_saved(sandbox: Sandbox) -> None:
    await sandbox.close()
    with pytest.raises(SandboxClosed):
        await sandbox.snapshot()
    with pytest.raises(SandboxClosed):
        await sandbox.fork()
