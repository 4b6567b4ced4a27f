"""Text of strangers cannot command a terminal, a log or a reader's eye."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.hooks.sanitize import diff_lines, escape_controls, one_line, strip_controls
from tests.cases import each_case

# Text, with many more control characters than it would have by chance.
NASTY = st.text(
    st.one_of(
        st.characters(), st.sampled_from('\x00\x07\x08\x1b\x7f\x9b\x9d\r\n\t[]m;0\u202e\u2066\u200f\u2028\ud800\udfff')
    )
)


def obeyed(text: str, allowed: str) -> list[str]:
    """The characters that somebody would obey."""
    marks = '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029'
    return [
        char for char in text if char not in allowed and (unicodedata.category(char) in ('Cc', 'Cs') or char in marks)
    ]


@given(NASTY)
def test_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    assert obeyed(escape_controls(text), '\n\t') == []


@given(NASTY, st.integers(2, 50))
def test_one_line_is_one_line_and_short(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert obeyed(line, '') == []
    assert len(line) <= limit


@given(NASTY)
def test_what_is_sent_can_be_encoded_and_holds_no_controls(text: str) -> None:
    sent = strip_controls(text)
    sent.encode('utf-8')
    assert [char for char in sent if unicodedata.category(char) == 'Cc' and char not in '\n\t\r'] == []


@given(st.text(st.characters(exclude_categories=('Cc', 'Cs', 'Cf', 'Zl', 'Zp'))))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert escape_controls(text) == strip_controls(text) == text


@each_case(
    ('text', 'shown'),
    [
        ('\x1b[31mred\x1b[0m', 'red'),
        ('\x1b]0;title\x07', r'\x1b]0;title\x07'),
        ('\x1b]52;c;aGk=\x07', r'\x1b]52;c;aGk=\x07'),
        ('\x1b[2J\x1b[H', r'\x1b[2J\x1b[H'),
        ('\x9b2J', r'\x9b2J'),
        ('safe\rEVIL', 'safe\nEVIL'),
        ('a\r\nb', 'a\nb'),
        ('a\bb', r'a\x08b'),
        ('admin\u202etxt.exe', r'admin\u202etxt.exe'),
        ('\ud800', r'\ud800'),
        ('tab\there', 'tab\there'),
        ('grün ✓ 日本', 'grün ✓ 日本'),
    ],
)
def test_what_becomes_of_it(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_a_line_of_a_diff_stays_one_line() -> None:
    assert diff_lines('') == []
    assert diff_lines('-one\n+# fine\rimport os\x0c\u2028\r\n') == ['-one', r'+# fine\rimport os\x0c\u2028\r']


def test_escape_sequences_are_not_sent_to_a_model() -> None:
    assert strip_controls('\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x00') == 'red link'
