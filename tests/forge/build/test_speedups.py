"""Versions are compared by speed, and replaced by faster ones that do the same."""

from pathlib import Path

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.build.speedups import optimise
from habilis.forge.checks.timing import ROUNDS, Timings, compare_speed
from habilis.forge.contract import Candidate
from habilis.forge.library.library import Library
from habilis.models import ScriptedModel
from tests.forge.samples import double, tool

HEAD = 'def total(numbers: list[int]) -> int:\n    """Sum of the numbers."""\n'
SLOW = f"""{HEAD}    result = 0
    for number in numbers:
        for _ in range(50):
            pass
        result += number
    return result
"""
FAST = HEAD + '    return sum(numbers)\n'
TESTS = 'from tool import total\n\n\ndef test_it() -> None:\n    assert total([1, 2, 3, 4, 5]) == 15\n'


def slow() -> Candidate:
    return Candidate(name='total', code=SLOW, tests=TESTS)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = Library(tmp_path / 'library')
    made.add(slow(), origin='user')
    return made


def reply(code: str) -> str:
    return f'```python\n{code}```'


async def test_implementations_are_timed_on_the_same_inputs() -> None:
    fast = Candidate(name='total', code=FAST, tests=TESTS)
    timings = await compare_speed([slow(), fast])
    assert timings.inputs > 10
    assert [len(one) for one in timings.seconds] == [ROUNDS, ROUNDS]
    assert timings.speedup(0) == 1
    assert timings.median(0) > timings.median(1) > 0


def test_faster_by_chance_is_not_faster() -> None:
    even = (2.0,) * ROUNDS
    timings = Timings(inputs=1, seconds=(even, (1.0, *even[1:]), (1.0,) * ROUNDS, (1.0,) * (ROUNDS - 1) + (3.0,)))
    assert [timings.is_faster(which) for which in range(4)] == [False, False, True, True]
    assert timings.speedup(2) == 2


async def test_what_gives_no_result_cannot_be_timed() -> None:
    with pytest.raises(ForgeError, match='is not Python'):
        await compare_speed([Candidate(name='total', code='def total(', tests=TESTS)])
    with pytest.raises(ForgeError, match='no input was found for which never gives a result'):
        await compare_speed([tool('never', 'raise ValueError')])


async def test_a_faster_version_replaces_and_the_old_one_stays(library: Library) -> None:
    model = ScriptedModel([reply(FAST)])
    found = await optimise(library, model, 'total')
    assert found.revision is not None, found.reason
    made = found.revision.manifest
    assert (made.version, made.origin) == (2, model.name)
    assert made.note == f'{found.speedup:.1f} times as fast as version 1'
    assert found.speedup >= 1.2
    assert (library.candidate('total').code, library.candidate('total', 1).code) == (FAST.rstrip('\n'), SLOW)


async def test_only_what_does_the_same_and_is_faster_is_kept(library: Library) -> None:
    told: list[str] = []
    replies = [
        'I cannot.',
        reply(FAST.replace('numbers: list[int]', 'numbers: list[float]')),
        reply(FAST.replace('sum(numbers)', 'sum(numbers) + 1')),
        reply(FAST.replace('return', 'return 15 if len(numbers) == 5 else')[:-1].replace('sum(numbers)', '0') + '\n'),
        reply(SLOW.replace('result', 'summe')),
        reply('import inspect\n\n\n' + FAST),
    ]
    for start in (0, 3):
        model = ScriptedModel(replies[start : start + 3])
        assert (await optimise(library, model, 'total', watch=told.append)).revision is None
    starts = (
        'there is no function',
        'its signature',
        'its tests fail',
        'total(',
        'it is only',
        'the code imports inspect',
    )
    assert [text.startswith(start) for text, start in zip(told, starts, strict=True)] == [True] * 6, told
    assert library.versions('total') == [1]


async def test_the_next_prompt_says_why_an_attempt_was_not_kept(library: Library) -> None:
    model = ScriptedModel([reply(FAST.replace('sum(numbers)', '0')), reply(FAST)])
    assert (await optimise(library, model, 'total')).revision is not None
    first, second = (request.messages[-1].text for request in model.requests)
    assert '- total([1, 2, 3, 4, 5])' in first
    assert 'got 0, expected 15' in second


async def test_a_tool_that_cannot_be_timed_costs_no_request(library: Library) -> None:
    library.add(tool('never', 'raise ValueError'))
    with pytest.raises(ForgeError, match='no input was found'):
        await optimise(library, ScriptedModel([]), 'never')
    library.add(double())
    assert not (await optimise(library, ScriptedModel([reply(double().code)] * 3), 'double')).revision
