"""Replies that repeat themselves are given up, long lists are not."""

import pytest

from habilis.agent.parsing.repetition import LINES, is_repeating


@pytest.mark.parametrize('circle', [1, 2, 8])
def test_the_same_lines_again_and_again_are_a_circle(circle: int) -> None:
    start = '```python\nx = 1\n'
    lines = ''.join(f'step({number % circle})\n' for number in range(LINES))
    assert is_repeating(start + lines)
    assert not is_repeating(start + lines[: len(lines) // 2])


def test_a_list_of_many_different_lines_is_none() -> None:
    assert not is_repeating(''.join(f'    {number % 9},\n' for number in range(500)))


def test_empty_lines_and_short_texts_are_none() -> None:
    assert not is_repeating('\n' * 500)
    assert not is_repeating('')
    assert not is_repeating('a\n' * 5)
