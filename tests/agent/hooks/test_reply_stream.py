"""A reply is split into prose and code while it is written."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from habilis.agent.hooks.reply_stream import MarkdownBlocks, ReplyStream
from tests.cases import each_case


def split(parts: list[str]) -> list[tuple[str, str]]:
    """The pieces of a reply, neighbours of one kind joined."""
    stream = ReplyStream()
    pieces = [piece for part in parts for piece in stream.feed(part)] + stream.finish()
    joined: list[tuple[str, str]] = []
    for kind, text in pieces:
        if joined and joined[-1][0] == kind:
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return [(kind, text.strip('\n')) for kind, text in joined]


@each_case(
    ('reply', 'pieces'),
    [
        ('I add.\n```python\nx = 1\ny = 2\n```\n', [('prose', 'I add.'), ('code', 'x = 1\ny = 2')]),
        ('~~~py\nx = 1\n~~~\nThat is it.', [('code', 'x = 1'), ('prose', 'That is it.')]),
        (
            '```python\nx = 1\n```\n\nAnd:\n```python\ny = 2\n```',
            [('code', 'x = 1'), ('prose', 'And:'), ('code', 'y = 2')],
        ),
        ('```python\nx = 1', [('code', 'x = 1')]),
        ('Use:\n```toml\n[a]\n```', [('prose', 'Use:\n```toml\n[a]\n```')]),
        ('import os\nprint(1)', []),
        ('Fine.', [('prose', 'Fine.')]),
    ],
)
def test_marked_code_is_distinguished_from_prose(reply: str, pieces: list[tuple[str, str]]) -> None:
    assert split([reply]) == pieces
    assert split(list(reply)) == pieces


def test_a_line_of_code_is_known_before_the_reply_is_complete() -> None:
    stream = ReplyStream()
    pieces = [piece for letter in 'Now.\n```python\nx = 1\ny = ' for piece in stream.feed(letter)]
    assert pieces[-1] == ('code', 'x = 1\n')
    assert stream.open_code == 'y = '


def test_the_end_of_a_fence_is_not_taken_for_code() -> None:
    stream = ReplyStream()
    stream.feed('```python\nx = 1\n``')
    assert stream.open_code == ''


@given(st.text(max_size=60), st.integers(1, 7))
@example('\n', 1)
def test_code_in_arguments_arrives_as_it_was_written(code: str, size: int) -> None:
    arguments = json.dumps({'code': code})
    stream = ReplyStream()
    parts = [arguments[start : start + size] for start in range(0, len(arguments), size)]
    received = ''.join(map(stream.feed_arguments, parts))
    assert received == (code if code.endswith('\n') else f'{code}\n')


def test_other_arguments_are_not_code() -> None:
    stream = ReplyStream()
    assert not stream.feed_arguments('{"path": "a", "code": "x"}')
    assert not stream.feed_arguments('{"code": "\\x')


def test_a_reply_with_an_example_counts_as_shown() -> None:
    reply = 'Look:\n\n```python\nx = 1\n```\n\nDone.'
    stream = ReplyStream()
    for letter in reply:
        stream.feed(letter)
    stream.finish()
    assert stream.has_shown(reply)
    assert not stream.has_shown('Look:')


def test_blocks_of_markdown_are_complete_at_a_blank_line_outside_of_a_fence() -> None:
    blocks = MarkdownBlocks()
    text = 'One\nmore.\n\n| a |\n|---|\n\n```\nx\n\ny\n```\n\nEnd'
    complete = [block for letter in text for block in blocks.feed(letter)]
    assert complete == ['One\nmore.', '| a |\n|---|', '```\nx\n\ny\n```']
    assert blocks.finish() == ['End']
