"""Properties of tools that pass their tests."""

from collections.abc import Callable
from typing import Any

import pytest

from habilis.core.limits import Limits
from habilis.forge.checks import properties
from habilis.forge.checks.inputs import near_inputs
from habilis.forge.checks.properties import check_properties, is_unsteady
from habilis.forge.contract import Candidate, Findings
from habilis.forge.library.seed_tools import seeds


def candidate(signature: str, body: str, test: str = '', *, before: str = '') -> Candidate:
    """A function `f`, and a test with one assertion."""
    code = f'{before}\ndef f{signature}:\n    """Do something."""\n    {body}\n'
    return Candidate(name='f', code=code, tests=f'from tool import f\n\ndef test_f():\n    assert {test or "True"}\n')


NUMBERS = '(numbers: list[int]) -> int'


@pytest.mark.parametrize(
    ('wrong', 'said'),
    [
        (
            candidate(NUMBERS, 'numbers.sort(); return 3', 'f([3, 1]) == 3'),
            'f([3, 1]) changes its arguments, to [[1, 3]]',
        ),
        (
            candidate(NUMBERS, 'return 2.5', 'f([3, 1]) == 2.5'),
            'f([3, 1]) returns 2.5, which is not of the declared type',
        ),
        (
            candidate('(n: int) -> list[str]', 'return [n]', 'f(1) == [1]'),
            'f(1) returns [1], which is not of the declared',
        ),
        (candidate('(n: int) -> bool', 'return 1', 'f(1) == 1'), 'f(1) returns 1, which is not of the declared type'),
        (candidate('(n: int) -> int', 'SEEN.append(n); return len(SEEN)', before='SEEN = []'), 'different results'),
        (candidate('(n: int) -> str', 'return object()', 'f(1)'), 'not of the declared type'),
    ],
)
async def test_what_is_wrong_wherever_it_is_called_is_refused(wrong: Candidate, said: str) -> None:
    findings = await check_properties(wrong)
    assert len(findings.refused) == 1
    assert said in findings.refused[0]


@pytest.mark.parametrize(
    ('odd', 'said'),
    [
        (candidate(NUMBERS, 'return numbers[0]', 'f([3, 1]) == 3'), 'f([]) raises IndexError'),
        (
            candidate(NUMBERS, 'return numbers[0] if numbers else None', 'f([3, 1]) == 3'),
            'f([]) returns None, which is',
        ),
        (candidate('(n: int) -> int', 'return 1 if n < 7 else f(n)', 'f(1) == 1'), ') raises RecursionError'),
    ],
)
async def test_undecided_behaviour_is_noted(odd: Candidate, said: str) -> None:
    findings = await check_properties(odd)
    assert findings.refused == ()
    assert [note for note in findings.noted if said in note]


async def test_a_call_that_does_not_end_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties, 'LIMITS', Limits(seconds=0.5, memory_mb=256))
    endless = candidate('(n: int) -> int', 'return sum(range(10**12 if n == 10 else n))', 'f(1) == 0')
    [note] = (await check_properties(endless)).noted
    assert note.startswith('f(10) does not end well on generated inputs: TimeoutError')


@pytest.mark.parametrize(
    'fine',
    [
        candidate('(a: int, b: int) -> float', 'return a / b', 'f(1, 2) == 0.5'),
        candidate(NUMBERS, 'return max(numbers)', 'f([3, 1]) == 3'),
        candidate('(n: int) -> int', 'return random.randint(0, 10**9)', before='import random'),
        candidate('(n: int) -> int', 'raise KeyError(n)', before='"""Raises `KeyError`."""'),
        candidate('(pair: tuple[int, str]) -> str', 'return pair[0] * pair[1]', "f((2, 'a')) == 'aa'"),
        candidate(
            '(mode: Literal["a", "b"]) -> str', 'return {"a": "x", "b": "y"}[mode]', before='from typing import Literal'
        ),
        candidate('(text: str) -> dict[str, list[int]]', 'return {text: [1]}', "f('a') == {'a': [1]}"),
        candidate('(n: int) -> Iterator[int]', 'yield n', before='from collections.abc import Iterator'),
        candidate('() -> int', 'return 3'),
    ],
)
async def test_what_is_meant_is_not_reported(fine: Candidate) -> None:
    assert await check_properties(fine) == Findings()


async def test_the_seeds_have_all_properties() -> None:
    assert {
        name: found for name, seed in seeds().items() if (found := await check_properties(seed)) != Findings()
    } == {}


def test_code_that_uses_chance_or_the_clock_is_known() -> None:
    assert is_unsteady('import random')
    assert is_unsteady('from datetime import date\ndef f(): return date.today()')
    assert not is_unsteady('from datetime import date\ndef f(): return date(2026, 1, 1)')


def test_inputs_have_the_declared_types() -> None:
    hints: dict[str, Callable[[Any], bool]] = {
        'tuple[int, str]': lambda one: isinstance(one[0], int) and isinstance(one[1], str),
        'tuple[str, ...]': lambda one: repr(one)[0] == '(' and all(isinstance(item, str) for item in one),
        'set[int]': lambda one: isinstance(one, set),
        'bytes': lambda one: isinstance(one, bytes),
        'Literal["a"]': lambda one: one == 'a',
        'dict[str, float]': lambda one: all(isinstance(item, float) for item in one.values()),
        'int | None': lambda one: one is None or isinstance(one, int),
    }
    for hint, fits in hints.items():
        inputs = near_inputs(candidate(f'(value: {hint}) -> int', 'return 1'), (), count=20)
        assert all(fits(value) for [value] in inputs), hint
