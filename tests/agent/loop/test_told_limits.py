"""What the model is told of a cell that was stopped: where, by which limit, what is undone, and what may help."""

import asyncio

import pytest

from habilis.agent import Agent
from habilis.core.limits import Limits
from habilis.models import ScriptedModel
from habilis.sandbox.options import SandboxSettings
from tests.agent.scripts import block, sent

UNDONE = 'All variables are as before this code; its tool calls and changes of files are not undone.'
FASTER = 'use a faster algorithm'


async def told(code: str, limits: Limits, **options: object) -> str:
    """The second prompt of a run whose first cell is this code."""
    model = ScriptedModel([block(code), block('final_answer(1)')])
    settings = SandboxSettings(limits=limits)
    async with Agent(model, sandbox_settings=settings, **options) as agent:  # type: ignore[arg-type]
        await agent.run('go')
    return sent(model, 1)


@pytest.mark.parametrize(
    ('code', 'place', 'hint'),
    [
        (
            'total = 7\nprint(total)\nwhile total:\n    total += 1',
            'lines 3-4, in <module>\n    while total:',
            'If a `while` loop never ends, correct its condition',
        ),
        (
            'import time\ntime.sleep(60)',
            'line 2, in <module>\n    time.sleep(60)',
            'The code was waiting, not computing',
        ),
        (
            'total = 7\nprint(sum(n for n in range(10**12)))',
            'line 2, in <module>\n    print(sum(n for n in range(10**12)))',
            f'The code took too long: {FASTER}',
        ),
    ],
)
async def test_a_cell_that_reached_the_time_limit(code: str, place: str, hint: str) -> None:
    text = await told(code, Limits(seconds=1))
    assert f'{place}\nTimeoutError: the time limit of 1 s was reached\n{UNDONE}\n{hint}' in text
    assert 'New variables' not in text


async def test_a_tool_that_is_slow_is_named() -> None:
    async def search() -> int:
        """Search."""
        await asyncio.Event().wait()
        return 1

    text = await told('found = await search()', Limits(seconds=1), tools=[search])
    assert f'{UNDONE}\nThe tool search took too long' in text
    assert FASTER not in text


async def test_a_cell_that_reached_the_memory_limit() -> None:
    text = await told('x = 1\ny = [bytearray(1 << 20) for _ in range(500)]', Limits(memory_mb=128))
    assert f'MemoryError: the memory limit of 128 MB was reached\n{UNDONE}' in text


async def test_a_cell_that_reached_the_output_limit_keeps_its_variables() -> None:
    text = await told('x = 1\nwhile True: print("spam")', Limits(output_bytes=500))
    assert 'the output limit of 500 bytes was reached' in text
    assert 'New variables: x = 1' in text
    assert UNDONE not in text
