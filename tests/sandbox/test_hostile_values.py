"""Values that a guest forges to freeze the host: the event loop keeps running, and the error names the limit."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from habilis.core.codec import Json
from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.host import guest_messages
from habilis.sandbox.session import Sandbox
from tests.sandbox.hostile import HOST, assert_right, kind_of, prepare


class Heartbeat:
    """Counts the longest time in which the event loop did nothing else, in seconds of computing by this process."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> 'Heartbeat':
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()

    async def _beat(self) -> None:
        before = time.process_time()
        while True:
            await asyncio.sleep(0.01)
            now = time.process_time()
            self.longest = max(self.longest, now - before)
            before = now


@pytest.fixture
async def beating() -> AsyncIterator[Heartbeat]:
    """Fails the test if the loop was blocked for long; the forged values took it from 3 to 9 seconds."""
    async with Heartbeat() as heartbeat:
        await asyncio.sleep(0.05)
        yield heartbeat
        await asyncio.sleep(0.05)
    assert heartbeat.longest < 10 * _yardstick()


def _yardstick() -> float:
    """Seconds of computing that this machine takes for a fifth of a second's work, as busy as it is."""
    started = time.process_time()
    sum(number * number for number in range(2_000_000))
    return time.process_time() - started


async def echo(value: object) -> object:
    return value


def store(value: object) -> None:
    """A plain tool."""


@pytest.fixture
async def roomy() -> AsyncIterator[Sandbox]:
    async with await Sandbox.create(limits=Limits(seconds=120, memory_mb=512), tools=[echo, store]) as made:
        yield made


FORGED = {
    'tagged values': """'{"value":[' + '{"$":"decimal","v":"1"},' * 1_300_000 + '1]}'""",
    'parts': """'{"value":[' + '[],' * 9_000_000 + '1]}'""",
    'characters': """'{"value":"' + 'x' * 70_000_000 + '"}'""",
    'a text': """'{"text":"' + 'x' * 2_000_000 + '"}'""",
    'depth': """'{"value":' + '[' * 3_000_000""",
    'digits': """'{"value":' + '9' * 9_000_000 + '}'""",
}
REASONS = {
    'tagged values': 'a value of more than 1,000,000 parts',
    'parts': 'more than 4,000,000 parts',
    'characters': 'more than the 67,108,864 allowed',
    'a text': 'more than 1,048,576 characters',
    'depth': 'not JSON: RecursionError',
    'digits': 'a number of more than 65,536 digits',
}


@pytest.mark.parametrize('name', FORGED)
async def test_a_forged_answer_does_not_block_the_loop(roomy: Sandbox, beating: Heartbeat, name: str) -> None:
    await prepare(roomy)
    forging = 'import habilis.sandbox.guest.kernel as module\nmodule.encode_answer = lambda answer, long: forged'
    cell = await roomy.run(f'forged = {FORGED[name]}\n{forging}')
    assert kind_of(cell) == 'broken'
    assert cell.error is not None
    assert REASONS[name] in cell.error.message
    await assert_right(roomy)


@pytest.mark.parametrize('name', ['keys', 'fields', 'long names', 'not text'])
async def test_forged_descriptions_do_not_block_the_loop(roomy: Sandbox, beating: Heartbeat, name: str) -> None:
    forged = {
        'keys': "{str(n): ['int', '', '1'] for n in range(300_000)}",
        'fields': "{'x': [['y'] * 900_000, '', '']}",
        'long names': "{'x' * 10_000_000: ['int', '', '1']}",
        'not text': "{'x': [10 ** 4000] * 3}",
    }[name]
    await roomy.run(
        f'import habilis.sandbox.guest.kernel as module\nmodule._HANDLERS["names"] = lambda kernel, request: {forged}'
    )
    described = await roomy.describe_variables()
    assert all(len(one.type) <= 100 and len(one.text) <= 100 for one in described.values())


async def test_forged_variables_do_not_block_the_loop(roomy: Sandbox, beating: Heartbeat) -> None:
    values = '{"values": {"x": [{"$": "decimal", "v": "1"}] * 1_300_000}, "missing": {}}'
    await roomy.run(
        f'import habilis.sandbox.guest.kernel as module\nmodule._HANDLERS["get"] = lambda kernel, request: {values}'
    )
    with pytest.raises(SandboxError, match='more than 1,000,000 parts'):
        await roomy.get_variables('x')
    missing = '{"values": {}, "missing": {"x": "y" * 10_000_000}}'
    await roomy.run(
        f'import habilis.sandbox.guest.kernel as module\nmodule._HANDLERS["get"] = lambda kernel, request: {missing}'
    )
    with pytest.raises(SandboxError) as raised:
        await roomy.get_variables('x')
    assert len(str(raised.value)) < 2000


@pytest.mark.parametrize('tool', ['echo', 'store'])
async def test_forged_arguments_do_not_block_the_loop(roomy: Sandbox, beating: Heartbeat, tool: str) -> None:
    message = f'\'s[1,"{tool}",[[[\' + \'{{"$":"tuple","v":[]}},\' * 300_000 + \'1]],{{}}]]\''
    cell = await roomy.run(HOST + f'host({message})\nlen(host("w10"))')
    assert cell.error is None
    assert [call.tool for call in cell.calls] == [tool]


async def test_no_tool_starts_if_its_cell_ended_while_the_arguments_were_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[object] = []

    def note(value: object) -> None:
        called.append(value)

    async def note_later(value: object) -> None:
        called.append(value)

    real = guest_messages.unpack

    def slow(message: Json) -> object:
        time.sleep(0.3)
        return real(message)

    monkeypatch.setattr(guest_messages, 'unpack', slow)
    for code in ('note(1)', 'await note_later(1)'):
        async with await Sandbox.create(tools=[note, note_later]) as sandbox:
            cell = await sandbox.run(code, seconds=0.1)
            assert kind_of(cell) == 'time'
    await asyncio.sleep(0.5)
    assert called == []


async def test_a_large_result_of_a_tool_does_not_block_the_loop(roomy: Sandbox, beating: Heartbeat) -> None:
    cell = await roomy.run('len(await echo([(n,) for n in range(100_000)]))')
    assert cell.value == 100_000


async def test_a_value_that_is_too_large_is_left_out_and_its_start_is_shown(roomy: Sandbox) -> None:
    cell = await roomy.run('"x" * 70_000_000')
    assert (cell.error, cell.value) == (None, None)
    assert cell.text is not None
    assert cell.text.startswith("'xxx")
    assert (await roomy.run('1 + 1')).value == 2


async def test_variables_that_are_too_large_together_are_left_out_by_size(roomy: Sandbox) -> None:
    await roomy.run('small = 1\na = "a" * 40_000_000\nb = "b" * 30_000_000')
    assert (await roomy.get_variables()).keys() == {'small', 'b'}
    assert len(str((await roomy.get_variables('a'))['a'])) == 40_000_000
    with pytest.raises(SandboxError, match=r'a is too large to be sent with the others, which takes 70,0.* characters'):
        await roomy.get_variables('a', 'b')


async def test_arguments_that_are_too_large_are_refused_inside(roomy: Sandbox) -> None:
    cell = await roomy.run('await echo("x" * 70_000_000)')
    assert cell.error is not None
    assert cell.error.type == 'ValueError'
    assert 'echo: what it is called with takes 70,000,0' in cell.error.message
    assert (await roomy.run('1 + 1')).value == 2


async def test_displays_that_are_too_large_are_an_error_of_the_cell(roomy: Sandbox) -> None:
    cell = await roomy.run('class Page:\n    def _repr_html_(self): return "x" * 70_000_000\ndisplay(Page())\ny = 5')
    assert cell.error is not None
    assert 'what the cell displays takes 70,000,0' in cell.error.message
    assert (await roomy.run('y')).value == 5
