"""Forged snapshots: a `SnapshotError`, or a sandbox that works; never another error."""

import asyncio
import hashlib
import json
import pickle
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from habilis.core.errors import SnapshotError
from habilis.core.limits import Limits
from habilis.sandbox import snapshot
from habilis.sandbox.session import Sandbox
from habilis.sandbox.snapshot import MAGIC, from_bytes
from tests.cases import each_case

HEADERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(['python', 'cells', 'lost', 'x']), inner)
    ),
    max_leaves=8,
)


def sealed(content: bytes) -> bytes:
    """Content with the right checksum."""
    return MAGIC + hashlib.sha256(content).hexdigest().encode() + b'\n' + content


@pytest.fixture(scope='module')
def real() -> bytes:
    async def make() -> bytes:
        async with await Sandbox.create() as sandbox:
            await sandbox.run(
                'import math\nx = [1, {"a": (2, 3.5)}]\ndef f(n): return n + math.floor(2.5)\nclass A: y = 1\na = A()'
            )
            return await sandbox.snapshot()

    return asyncio.run(make())


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_checkpoint_or_a_snapshot_error(data: bytes) -> None:
    for forged in (data, MAGIC + data, sealed(data)):
        try:
            from_bytes(forged)
        except SnapshotError:
            continue


@given(header=HEADERS, state=st.binary(max_size=20))
def test_any_header_is_a_checkpoint_or_a_snapshot_error(header: object, state: bytes) -> None:
    try:
        found = from_bytes(sealed(json.dumps(header).encode() + b'\n' + state))
    except SnapshotError:
        return
    assert isinstance(found.python, str)
    assert isinstance(found.cells, int)
    assert all(isinstance(name, str) for name in found.lost)


@each_case('header', [b'[' * 100_000, b'9' * 10_000, b'{"python":' * 50_000, b'\xff', b'NaN', b'null', b''])
def test_a_hostile_header_is_refused(header: bytes) -> None:
    with pytest.raises(SnapshotError):
        from_bytes(sealed(header + b'\n'))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    places=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.none() | st.floats(0, 1),
)
def test_a_mutated_state_is_restored_or_refused(
    real: bytes, places: list[tuple[float, int]], cut: float | None
) -> None:
    header, _, state = real[len(MAGIC) + 65 :].partition(b'\n')
    changed = bytearray(state)
    for place, byte in places:
        changed[int(place * len(changed))] = byte
    kept = bytes(changed) if cut is None else bytes(changed[: int(cut * len(changed))])
    asyncio.run(restore_and_use(sealed(header + b'\n' + kept)))


class Evil:
    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return (exec, (self.code,))


@pytest.mark.parametrize(
    'code',
    [
        'import os; os._exit(3)',
        'raise SystemExit(2)',
        'raise KeyboardInterrupt',
        'while True: pass',
        'x = "y" * (1 << 40)',
        'import sys; sys.modules.clear()',
        'import __main__; __main__.__dict__.clear()',
        'import builtins; builtins.__dict__.clear()',
        'import habilis.sandbox.guest.kernel as k; k.dump = lambda m: "x" * 70_000_000',
        'import habilis.sandbox.guest.kernel as k; k.dump = lambda m: \'{"problem":"\' + "p" * 1_000_000 + \'"}\'',
        'import habilis.sandbox.guest.kernel as k; k._HANDLERS["load"] = None; raise BaseException',
        'def f(): f()\nf()',
    ],
)
async def test_a_state_that_breaks_its_interpreter_is_a_snapshot_error(code: str) -> None:
    values = pickle.dumps({'x': Evil(code)}, 4) + pickle.dumps({}, 4)
    async with await Sandbox.create() as sandbox:
        header = (await sandbox.snapshot())[len(MAGIC) + 65 :].partition(b'\n')[0]
    await restore_and_use(sealed(header + b'\n' + values))


async def restore_and_use(forged: bytes) -> None:
    limits = Limits(seconds=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('habilis.sandbox.host.interpreter.SAVE_SECONDS', 1.0)
        with suppress(SnapshotError):
            async with await Sandbox.restore(forged, limits=limits) as sandbox:
                await sandbox.run('1')
        async with await Sandbox.create(limits=limits) as sandbox:
            with suppress(SnapshotError):
                await sandbox.load_snapshot(forged)
            kinds = [cell.error and cell.error.kind for cell in [await sandbox.run('1') for _ in range(3)]]
            assert {None, 'broken', 'exit', 'exception'} >= set(kinds)


def test_an_interpreter_of_another_version_is_named(real: bytes) -> None:
    found = from_bytes(real)
    other = snapshot.to_bytes(snapshot.SavedVariables(state=found.state, python='cpython 2.7', cells=1))

    async def restore() -> None:
        with pytest.raises(SnapshotError, match=r'made by cpython 2\.7'):
            await Sandbox.restore(other)

    asyncio.run(restore())
