"""What a model says is shown while it writes; its code is not."""

from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.hooks.prose_filter import ProseFilter
from tests.cases import each_case


def shown(pieces: list[str]) -> str:
    """All that is let through."""
    prose = ProseFilter()
    return ''.join([*map(prose.feed, pieces), prose.finish()])


def early(text: str) -> str:
    """What is let through before the reply is complete, if it comes letter by letter."""
    prose = ProseFilter()
    return ''.join(map(prose.feed, text))


@each_case(
    ('reply', 'prose'),
    [
        ('I add them.\n```python\nx = 1\n```', 'I add them.'),
        ('I add them.\n\n~~~py\nx = 1\n~~~\nThat is it.', 'I add them.\nThat is it.'),
        ('```python\nprint(1)\n```', ''),
        ('```python\nprint(1)', ''),
        ('Look: <code>\nimport os\nos.getcwd()\n</code>', 'Look:'),
        ('import os\nprint(os.getcwd())', ''),
        ('total_amount = 5 * 3\nprint(total_amount)', ''),
        ('{"code": "print(1)"}', ''),
        ('>>> print(1)', ''),
        ('The answer is 5.', 'The answer is 5.'),
        ('For example:\n\n- one\n- two', 'For example:\n\n- one\n- two'),
        ('Is 3 < 5? Yes.', 'Is 3 < 5? Yes.'),
        ('', ''),
    ],
)
def test_what_is_shown_of_a_reply(reply: str, prose: str) -> None:
    assert shown([reply]).strip() == prose
    assert shown(list(reply)).strip() == prose


def test_an_example_inside_an_answer_is_shown_as_it_was_written() -> None:
    reply = 'Use this file:\n```toml\n[tool]\n```\nThen go on.'
    assert shown(list(reply)) == reply


def test_prose_is_shown_before_the_reply_is_complete() -> None:
    assert early('I will now add the numbers and').endswith('numbers and')


def test_no_letter_of_the_code_is_shown_before_it_is_known_to_be_code() -> None:
    assert early('Fine.\n```python\nsecret = 1\n```\n').strip() == 'Fine.'


def test_what_was_shown_can_be_compared_with_the_answer() -> None:
    prose = ProseFilter()
    for letter in 'Hello you.\nGood day.':
        prose.feed(letter)
    prose.finish()
    assert prose.shown == 'Hello you.\nGood day.'


PARTS = [
    'Hello ',
    'you',
    '\n',
    '\n\n',
    '```python\n',
    'x = 1\n',
    '```',
    '<code>',
    '</code>',
    '<',
    '`',
    '~',
    '> ',
    '{',
    'from',
]


@given(st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=8)), max_size=12).map(''.join), st.data())
def test_how_a_reply_is_cut_into_pieces_makes_no_difference(reply: str, data: st.DataObject) -> None:
    pieces: list[str] = []
    rest = reply
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        pieces.append(rest[:size])
        rest = rest[size:]
    assert ''.join(shown(pieces).split()) == ''.join(shown(list(reply)).split())
