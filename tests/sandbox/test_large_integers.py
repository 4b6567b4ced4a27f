"""Integers of any size cross between guest and host, in both directions, and are printed inside."""

import sys

import pytest

from habilis.core.previews import shorten
from habilis.sandbox.session import Sandbox

LARGE = 10**6000
EDGES = [2**2047, 2**2048, -(2**2048), 2**4096, LARGE, -LARGE, 1 << 3_000_000]
got: list[int] = []


def double(number: int) -> int:
    got.append(number)
    return number * 2


async def double_later(number: int) -> int:
    return double(number)


@pytest.fixture(params=[640, 4300, 0])
def digits(request: pytest.FixtureRequest):
    """Whatever limit the host's interpreter has on decimal digits."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(request.param)
    yield
    sys.set_int_max_str_digits(before)


@pytest.mark.usefixtures('digits')
@pytest.mark.parametrize('number', EDGES, ids=lambda number: f'{number.bit_length()} bits')
async def test_an_integer_crosses_in_every_way(number: int) -> None:
    got.clear()
    async with await Sandbox.create(tools=[double, double_later], variables={'x': number}) as sandbox:
        assert (await sandbox.run('x')).value == number
        assert (await sandbox.run('[x, {x: (x,)}]')).value == [number, {number: (number,)}]
        cell = await sandbox.run('double(x), await double_later(x)')
        assert (cell.value, got) == ((2 * number, 2 * number), [number, number])
        assert [(call.arguments or {})['number'] for call in cell.calls] == [number, number]
        assert all(len(call.result) <= 200 for call in cell.calls)
        await sandbox.set_variables({'y': [number]})
        assert await sandbox.get_variables('x', 'y') == {'x': number, 'y': [number]}
        assert (await sandbox.describe_variables())['x'].type == 'int'
        async with await sandbox.fork() as twin:
            assert (await twin.run('x == y[0]')).value is True


async def test_an_integer_is_printed_inside_at_any_size(sandbox: Sandbox) -> None:
    cell = await sandbox.run('print(10 ** 6000)\nint("9" * 6000)')
    assert cell.stdout == f'1{"0" * 6000}\n'
    assert cell.text == '9' * 6000


async def test_the_text_of_a_huge_integer_is_short(sandbox: Sandbox) -> None:
    cell = await sandbox.run('1 << 10_000_000')
    assert cell.text is not None
    assert cell.text.startswith('0x1000')
    assert len(cell.text) < 101_000


async def test_a_key_that_is_a_large_integer_is_named_in_an_error(sandbox: Sandbox) -> None:
    await sandbox.run('x = {10 ** 6000: object()}')
    with pytest.raises(Exception, match='is not plain data but an object'):
        await sandbox.get_variables('x')


@pytest.mark.usefixtures('digits')
def test_a_preview_of_a_large_integer_does_not_take_long_and_says_its_size() -> None:
    assert shorten(LARGE, 100) == f'1{"0" * 19}…{"0" * 20} (6,001 digits)'
    assert shorten([1 << 50_000_000], 100) == '[60701449216476362173…53936894129787109376 (15,051,500 digits)]'
    assert shorten(2**64, 100) == '18446744073709551616'
