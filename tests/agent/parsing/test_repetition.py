"""Replies that repeat themselves are given up, long lists are not."""

import pytest

from habilis.agent.parsing.repetition import LINES, goes_in_circles


@pytest.mark.parametrize('circle', [1, 2, 8])
def test_the_same_lines_again_and_again_are_a_circle(circle: int) -> None:
    start = '```python\nx = 1\n'
    lines = ''.join(f'step({number % circle})\n' for number in range(LINES))
    assert goes_in_circles(start + lines)
    assert not goes_in_circles(start + lines[: len(lines) // 2])


def test_a_list_of_many_different_lines_is_none() -> None:
    assert not goes_in_circles(''.join(f'    {number % 9},\n' for number in range(500)))


def test_empty_lines_and_short_texts_are_none() -> None:
    assert not goes_in_circles('\n' * 500)
    assert not goes_in_circles('')
    assert not goes_in_circles('a\n' * 5)
