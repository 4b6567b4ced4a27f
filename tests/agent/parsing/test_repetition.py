"""Replies that repeat themselves are stopped while they are written, long tables and lists are not."""

import random
import textwrap

from hypothesis import given, settings
from hypothesis import strategies as st

from habilis.agent.parsing.repetition import HOSTED_PATIENCE, LINES, RepetitionDetector, is_repeating, needed_characters
from tests.cases import each_case

WORDS = 'the model reads a table and adds the numbers of each row to a total before it prints them again'.split()
PARAGRAPH = textwrap.fill(
    'First we have to load the data from the file, because the analysis needs all rows. Then we compute the average '
    'of each column, check it for errors, and print the result. After that we can give the final answer to the user.',
    width=100,
)
CODE = """
def average(values):
    total = 0
    for value in values:
        if value > 10:
            total += value
        if value > 10:
            total += 1
    return total / len(values)

print(average([1, 2, 3]))
"""


def stopped_at(text: str, patience: int = 1, size: int = 4) -> int | None:
    """Where a stream in pieces of this size is stopped."""
    detector = RepetitionDetector(patience)
    for start in range(0, len(text), size):
        if detector.feed(text[start : start + size]):
            return start + size
    return None


@each_case('circle', [1, 2, 8, 9, 23])
def test_the_same_lines_again_and_again_are_a_circle(circle: int) -> None:
    start = '```python\nx = 1\n'
    lines = ''.join(f'step({number % circle})\n' for number in range(LINES * 3))
    assert is_repeating(start + lines)
    assert not is_repeating(start + lines[: len(lines) // 6])


@each_case('unit', ['word ', 'and then ', PARAGRAPH, f'{PARAGRAPH}\n\n', CODE, CODE + PARAGRAPH + CODE[::-1]])
@each_case('patience', [1, HOSTED_PATIENCE])
def test_a_repetition_of_any_period_is_stopped_soon_after_it_begins(unit: str, patience: int) -> None:
    start = 'Let me think about it.\n\n'
    place = stopped_at(start + unit * (9000 // len(unit) + 4), patience)
    assert place is not None
    assert place <= len(start) + needed_characters(unit, patience) + len(unit) + 4
    assert stopped_at(start + unit * 2, patience) is None


@given(
    unit=st.text(min_size=1, max_size=700),
    start=st.text(max_size=300),
    size=st.integers(min_value=1, max_value=50),
)
@settings(max_examples=60, deadline=None)
def test_every_text_that_repeats_for_long_is_stopped(unit: str, start: str, size: int) -> None:
    assert stopped_at(start + unit * (4000 // len(unit) + 4), size=size) is not None


def rows(seed: int, count: int) -> dict[str, str]:
    """Real-looking data with few distinct values, similar rows and repeated cells."""
    pick = random.Random(seed)
    label = ['positive', 'negative', 'neutral']
    city = ['Berlin', 'Paris', 'Rome', 'Oslo']
    numbers = range(count)
    return {
        'labels': ''.join(f'{pick.choice(label)}\n' for _ in numbers),
        'bits': ''.join(pick.choice('01') + (' ' if n % 32 else '\n') for n in range(16 * count)),
        'numbered': ''.join(f'{n}. The total of this row is 0.\n' for n in numbers),
        'table': ''.join(f'| {n} | {pick.choice(city)} | {pick.choice(label)} | 0.00 | yes |\n' for n in numbers),
        'csv': ''.join(f'{pick.choice(city)},{pick.randint(0, 3)},0,0,0,0,0,0\n' for _ in numbers),
        'dicts': ''.join(f"    {{'id': {n}, 'name': 'item', 'price': 0.0, 'tags': []}},\n" for n in numbers),
        'calls': ''.join(f'assert add({n}, 0) == {n}\n' for n in numbers),
        'json': ''.join(f'{{"date": "2024-01-{n % 28 + 1:02}", "value": {n * 7 % 11}}},\n' for n in numbers),
        'zeros': f'grid = [{", ".join(["0"] * 400)}]\n',
        'matrix': ''.join(f'[{", ".join(["0"] * 9)}],\n' for _ in range(9)) * 2,
        'rulers': f'{"=" * 80}\nTitle\n{"=" * 80}\n\n| a | b |\n|{"-" * 60}|{"-" * 60}|\n{"-" * 100}\n',
        'hex': ''.join(f'{16 * n:08x}: {"0000 " * 8}\n' for n in numbers),
        'prose': ' '.join(pick.choice(WORDS) for _ in range(10 * count)),
        'stubs': ''.join(f'def method_{n}(self):\n    raise NotImplementedError\n\n' for n in numbers),
    }


@each_case('seed', range(8))
def test_long_tables_lists_and_code_with_similar_rows_are_no_repetition(seed: int) -> None:
    for name, text in rows(seed, 500).items():
        assert stopped_at(text, size=1 + seed) is None, name


@given(
    st.lists(st.tuples(st.sampled_from(['yes', 'no']), st.integers(0, 99_999)), min_size=100, max_size=400, unique=True)
)
@settings(max_examples=30, deadline=None)
def test_rows_that_all_differ_are_no_repetition(pairs: list[tuple[str, int]]) -> None:
    assert not is_repeating(''.join(f'| {word} | {number} | 0 | 0 | 0 |\n' for word, number in pairs))


def test_a_text_that_continues_after_a_repetition_does_not_repeat_itself() -> None:
    assert not is_repeating('all work and no play\n' * 100 + 'And that was the whole book.')


def test_empty_lines_and_short_texts_are_none() -> None:
    assert not is_repeating('\n' * 500)
    assert not is_repeating('')
    assert not is_repeating('a\n' * 5)


def test_a_long_text_costs_no_more_per_character_than_a_short_one() -> None:
    """Memory is bounded too: only the last characters are kept."""
    detector = RepetitionDetector()
    for number in range(30_000):
        assert not detector.feed(f'{number * 7919 % 104_729} ')
    kept = vars(detector)
    assert len(kept['_text']) < 100_000
    assert len(kept['_last_seen']) < 100_000
