"""How many wrong variants of the code tests notice."""

from dataclasses import replace

from habilis.forge.checks.mutation import mutation_score
from habilis.forge.contract import Candidate
from tests.forge.samples import double

LARGEST = '''def largest(numbers: list[int]) -> int:
    """The largest number."""
    best = numbers[0]
    for number in numbers:
        if number > best:
            best = number
    return best
'''
NONE = '    if not numbers:\n        return 0\n'


def with_asserts(code: str, *asserts: str) -> Candidate:
    tests = [f'def test_{number}() -> None:\n    assert {text}\n' for number, text in enumerate(asserts)]
    return Candidate(name='largest', code=code, tests='from tool import largest\n\n\n' + '\n\n'.join(tests))


async def test_good_tests_notice_wrong_variants_and_weak_ones_do_not() -> None:
    assert (await mutation_score(double(), seconds=0.1)).share == 1
    tests = 'from tool import double\n\n\ndef test_a() -> None:\n    assert double(0) == 0\n'
    weak = await mutation_score(replace(double(), tests=tests), seconds=0.1)
    assert weak.share < 1
    assert weak.survivors == ('line 3: 2 → 3',)


async def test_a_variant_that_does_the_same_as_the_code_does_not_count() -> None:
    score = await mutation_score(with_asserts(LARGEST, 'largest([5]) == 5', 'largest([1, 3, 2]) == 3'), seconds=0.1)
    assert (score.share, score.total, score.survivors) == (1, 3, ())  # not `number >= best`


async def test_a_case_that_no_test_has_is_not_taken_for_one_that_does_not_exist() -> None:
    code = LARGEST.replace('    best = numbers[0]\n', f'{NONE}    best = numbers[0]\n')
    score = await mutation_score(with_asserts(code, 'largest([5]) == 5', 'largest([1, 3, 2]) == 3'), seconds=0.1)
    assert (score.survivors, score.calls) == (('line 4: 0 → 1',), ('largest([])',))


async def test_a_variant_whose_place_is_never_reached_counts() -> None:
    rare = '    if len(numbers) > 50:\n        return 0\n'
    code = LARGEST.replace('    best = numbers[0]\n', f'{rare}    best = numbers[0]\n')
    score = await mutation_score(with_asserts(code, 'largest([5]) == 5', 'largest([1, 3, 2]) == 3'), seconds=0.1)
    assert set(score.survivors) == {
        'line 3: len(numbers) > 50 → len(numbers) >= 50',
        'line 3: 50 → 51',
        'line 4: 0 → 1',
    }


async def test_a_call_that_shows_a_variant_is_short() -> None:
    code = 'def without_first(items: list[str]) -> list[str]:\n    """All but the first."""\n    return items[1:]\n'
    long = [f'item {number}' for number in range(30)]
    tests = f'from tool import without_first\n\n\ndef test_a() -> None:\n    assert without_first({long}) != {long}\n'
    score = await mutation_score(Candidate(name='without_first', code=code, tests=tests), seconds=0.1)
    assert score.share < 1
    assert max(map(len, score.calls)) < len(str(long)) / 4
