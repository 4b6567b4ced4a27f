"""Long output is cut in the middle, and the cut is named (row D11)."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.context.truncation import Bounds, truncate
from habilis.models.tokens import count_tokens
from tests.cases import each_case

NOTE = re.compile(r'\[… ([\d,]+) characters truncated(?: in ([\d,]+) lines)?(?:; (.*))? …\]')
SMALL = Bounds(tokens=100, lines=10)


def parts(text: str) -> tuple[str, re.Match[str], str]:
    """What stands before the note, the note, and what stands after it."""
    [note] = NOTE.finditer(text)
    return text[: note.start()].removesuffix('\n'), note, text[note.end() :].removeprefix('\n')


def number(text: str) -> int:
    return int(text.replace(',', ''))


@each_case('text', ['', 'short', 'a\nb\n', '\n' * 9, 'word ' * 90])
def test_what_fits_is_left_as_it_is(text: str) -> None:
    assert truncate(text, SMALL).text == text
    assert not truncate(text, SMALL).is_truncated


def test_many_lines_keep_their_first_and_last() -> None:
    found = truncate('\n'.join(f'line {count}' for count in range(1000)), Bounds(tokens=2000, lines=10))
    head, note, tail = parts(found.text)
    assert found.is_truncated
    assert head.split('\n') == [f'line {count}' for count in range(6)]
    assert tail.split('\n') == [f'line {count}' for count in range(996, 1000)]
    assert number(note[2]) == 990


def test_one_line_of_100_kilobytes_keeps_its_beginning_and_end() -> None:
    text = 'BEGIN ' + 'abcdefgh ' * 11_000 + 'END'
    head, note, tail = parts(truncate(text, Bounds(tokens=200, lines=10)).text)
    assert head.startswith('BEGIN abcdefgh')
    assert tail.endswith('abcdefgh END')
    assert len(head) + number(note[1]) + len(tail) == len(text)
    assert note[2] is None
    assert len(head) > len(tail) > 100


@pytest.mark.parametrize(
    'text',
    ['x' * 100_000, '1' * 100_000, '🙂' * 50_000, '=' * 100_000, ' ' * 100_000 + 'x', 'é\u0301' * 9_000],
    ids=['letters', 'digits', 'emoji', 'signs', 'spaces', 'accents'],
)
def test_a_line_without_words_is_cut_too(text: str) -> None:
    head, note, tail = parts(truncate(text, Bounds(tokens=50, lines=10)).text)
    assert head
    assert tail
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + number(note[1]) + len(tail) == len(text)


def test_the_first_line_is_kept_when_the_second_is_huge() -> None:
    found = truncate('Columns: a, b, c\n' + 'data ' * 50_000, Bounds(tokens=100, lines=10))
    assert found.text.startswith('Columns: a, b, c\ndata data')


def test_lines_are_cut_between_lines_where_that_is_possible() -> None:
    rows = [f'row {count} has some words' for count in range(200)]
    head, _, tail = parts(truncate('\n'.join(rows), Bounds(tokens=100, lines=500)).text)
    assert head.split('\n') == rows[: head.count('\n') + 1]
    assert tail.split('\n') == rows[-tail.count('\n') - 1 :]


def test_a_line_break_just_before_the_cut_leaves_no_empty_line() -> None:
    text = 'word ' * 59 + 'end\n' + 'more ' * 200
    for tokens in range(80, 120):
        assert '\n\n' not in truncate(text, Bounds(tokens=tokens, lines=10)).text


def test_the_note_says_where_the_rest_is() -> None:
    note = parts(truncate('x\n' * 100, SMALL, where='the whole is in the variable output_3').text)[1]
    assert note[3] == 'the whole is in the variable output_3'


def test_it_can_be_switched_off() -> None:
    text = 'word ' * 10_000
    assert truncate(text, replace(SMALL, enabled=False)).text == text
    assert truncate(text, replace(SMALL, enabled=False)).is_truncated is False


def test_other_bounds_show_more_of_the_same_text() -> None:
    text = 'some words here\n' * 1000
    sizes = [len(truncate(text, Bounds(tokens=tokens, lines=900)).text) for tokens in (50, 200, 1000, 100_000)]
    assert sizes == sorted(set(sizes))


@each_case(('tokens', 'lines'), [(19, 200), (0, 200), (-1, 200), (2000, 1), (2000, 0)])
def test_bounds_too_small_to_show_anything_are_refused(tokens: int, lines: int) -> None:
    with pytest.raises(ValueError, match=f'at least 20 tokens and 2 lines, not {tokens} and {lines}'):
        Bounds(tokens=tokens, lines=lines)


words = st.sampled_from(['\n', 'some words ', '        ', '-----', '12345'])
long_texts = st.tuples(st.lists(st.one_of(st.text(max_size=30), words), max_size=8), st.integers(1, 60)).map(
    lambda made: ''.join(made[0]) * made[1]
)


@given(long_texts, st.integers(20, 200), st.integers(2, 30))
def test_any_text_comes_within_its_bounds_with_nothing_made_up(text: str, tokens: int, lines: int) -> None:
    found = truncate(text, Bounds(tokens=tokens, lines=lines))
    if not found.is_truncated:
        assert found.text == text
        assert count_tokens(text) <= tokens
        assert text.count('\n') < lines
        return
    head, note, tail = parts(found.text)
    assert head or text.startswith('\n')
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + number(note[1]) + len(tail) == len(text)
    assert number(note[1]) > 0
    assert count_tokens(head) + count_tokens(tail) <= tokens
    assert found.text.count('\n') <= lines + 1  # the note is one more, and a line cut in two is one more
