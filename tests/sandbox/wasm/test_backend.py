"""The `wasm` backend by itself: guests, and those that are started ahead."""

import asyncio
import json
import threading
from pathlib import Path

import pytest

from habilis import Limits, Sandbox
from habilis.sandbox.backends import backend
from habilis.sandbox.contract import BriefGuest, GuestDied, GuestSpec, Interrupted, Mount, Stream
from habilis.sandbox.guest.bridge import PIECE
from habilis.sandbox.host.workers import WORKERS
from habilis.sandbox.wasm.engine import WasmEngine, WasmGuest


class Host:
    """A host that answers nothing, and may want the guest to end."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.ticks = 0

    def answer(self, message: str) -> str:
        return '[]'

    def write(self, stream: Stream, data: bytes) -> None: ...

    def check(self) -> None:
        self.ticks += 1
        if self.over.is_set():
            raise Interrupted


async def test_a_guest_answers_on_every_thread() -> None:
    guest = await WORKERS.submit(lambda: backend('wasm').start(GuestSpec()))
    assert _value(await WORKERS.submit(lambda: guest.enter('r6 * 7', Host()))) == 42
    assert _value(guest.enter('r6 * 8', Host())) == 48
    await WORKERS.submit(guest.close)


def _value(answer: str | None) -> object:
    assert answer is not None
    return json.loads(answer.partition('\x1f')[0])['value']


async def test_what_takes_longer_is_begun_here_and_goes_on_elsewhere() -> None:
    guest = backend('wasm').start(GuestSpec())
    assert isinstance(guest, BriefGuest)
    assert _value(guest.begin('r6 * 7', Host())) == 42
    assert guest.begin('rx = sum(range(2_000_000))\nx', Host()) is None
    assert _value(await WORKERS.submit(lambda: guest.go_on(Host()))) == 1999999000000
    assert guest.begin('rimport time\ntime.sleep(1)', Host()) is None  # it waits for an answer
    guest.close()


async def test_deep_recursion_ends_in_an_error_on_a_thread_with_a_small_stack() -> None:
    guest = backend('wasm').start(GuestSpec())
    deep = 'x = []\nfor _ in range(100_000): x = [x]\nrepr(x)'
    answers: list[str] = []
    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=lambda: answers.append(guest.enter(f'r{deep}', Host())))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert 'RecursionError' in answers[0]
    guest.close()


async def test_an_interrupt_ends_what_runs_and_not_what_comes_after() -> None:
    guest = await WORKERS.submit(lambda: backend('wasm').start(GuestSpec()))
    guest.interrupt()  # nothing runs
    answer = await WORKERS.submit(lambda: guest.enter('r1 + 1', Host()))
    assert json.loads(answer.partition('\x1f')[0])['value'] == 2
    running = WORKERS.submit(lambda: guest.enter('rwhile True: pass', Host()))
    await asyncio.sleep(0.1)
    guest.interrupt()
    with pytest.raises(GuestDied, match='interrupted'):
        await running
    with pytest.raises(GuestDied, match='the interpreter has ended'):
        await WORKERS.submit(lambda: guest.enter('r1', Host()))


async def test_a_busy_guest_lets_the_host_look_at_it_again_and_again() -> None:
    guest = await WORKERS.submit(lambda: backend('wasm').start(GuestSpec()))
    host = Host()
    running = WORKERS.submit(lambda: guest.enter('rwhile True: pass', host))
    await asyncio.sleep(0.5)
    host.over.set()
    with pytest.raises(GuestDied):
        await running
    assert host.ticks > 3


@pytest.mark.parametrize('memory_mb', [48, 64, 100])
async def test_one_that_was_started_ahead_keeps_to_the_limits_it_gets(memory_mb: int) -> None:
    for _ in range(4):  # more than are started ahead
        async with await Sandbox.create(limits=Limits(memory_mb=memory_mb, seconds=20)) as sandbox:
            assert (await sandbox.run('x = [1]\nsum(range(1000))')).value == 499500
            cell = await sandbox.run(f'more = bytearray({memory_mb} << 20)')
            assert cell.error is not None
            assert cell.error.kind == 'memory'
            assert (await sandbox.run('x')).value == [1]


async def test_many_may_be_started_at_the_same_moment() -> None:
    sandboxes = await asyncio.gather(*(Sandbox.create() for _ in range(40)))
    cells = await asyncio.gather(*(sandbox.run(f'{n}') for n, sandbox in enumerate(sandboxes)))
    assert [cell.value for cell in cells] == list(range(40))
    await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))


async def test_one_that_was_started_ahead_has_the_mounts_it_gets_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = [Mount(source=tmp_path, target='/in'), Mount(source=tmp_path, target='/out', writable=True)]
    made: list[GuestSpec] = []
    start = WasmEngine.start

    def counting(engine: WasmEngine, spec: GuestSpec) -> WasmGuest:
        made.append(spec)
        return start(engine, spec)

    monkeypatch.setattr(WasmEngine, 'start', counting)
    for round_ in range(8):
        await asyncio.sleep(0.05)  # until one is ready
        async with await Sandbox.create(mounts=mounts, workspace=True) as sandbox:
            cell = await sandbox.run(
                'import os\nos.write(1, b"raw")\nopen("/out/x", "a").write("x")\nlen(open("/in/x").read())'
            )
            assert (cell.value, cell.stdout) == (round_ + 1, 'raw')
            assert (await sandbox.run('open("/in/x", "w")')).error
            assert (await sandbox.run('os.listdir("/workspace")')).value == []
            assert (await sandbox.run('while True: pass', seconds=0.05)).error
            assert (await sandbox.run('open("/in/x").read()[:1]')).value == 'x'  # in the next interpreter
        async with await Sandbox.create() as without:
            assert (await without.run('open("/in/x")')).error
            assert (await without.run('import os\nos.listdir("/")')).error
    assert all(not spec.mounts for spec in made[-4:]), 'none of them was started ahead'


async def test_an_answer_of_any_length_arrives_whole() -> None:
    async with await Sandbox.create() as sandbox:
        for length in (*range(2 * PIECE - 60, 2 * PIECE + 5), 20 * PIECE):
            text = 'é' + 'x' * length + 'é'
            assert (await sandbox.run(f'text = "é" + "x" * {length} + "é"\ntext')).value == text
            assert text.encode() in await sandbox.snapshot()
