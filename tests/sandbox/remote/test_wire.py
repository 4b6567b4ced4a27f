"""Frames: numbers, what was seen, what is sent again."""

import pytest

from habilis.core.codec import CodecError
from habilis.sandbox.remote.wire import MAX_UNSEEN, Channel, Frame, parse_frame
from tests.cases import each_case


def test_a_frame_comes_back_as_it_was() -> None:
    frame = Frame(3, 2, 'enter', 'line\nline ü \0')
    assert parse_frame(frame.encode()) == frame


@each_case(
    'text', ['', '1 2', '1 2 evil\n', '-1 0 enter\n', '1 ² enter\n', f'{"9" * 70} 0 enter\n', b'1 0 enter\n', None]
)
def test_a_malformed_frame_is_refused(text: object) -> None:
    with pytest.raises(CodecError):
        parse_frame(text)


def test_what_was_not_seen_is_sent_again_in_order_and_taken_once() -> None:
    one, other = Channel(), Channel()
    lost: list[str] = []
    one.connect(lost.append, 0)
    for body in 'abc':
        one.send('tell', body)
    assert other.receive(parse_frame(lost[0]))
    one.disconnect()
    one.send('tell', 'd')
    again: list[str] = []
    one.connect(again.append, other.seen)
    assert [parse_frame(text).body for text in again] == ['b', 'c', 'd']
    assert [other.receive(parse_frame(text)) for text in (lost[0], *again, *again)] == [
        False,
        True,
        True,
        True,
        *[False] * 3,
    ]


def test_a_gap_and_a_forged_receipt_are_refused() -> None:
    channel = Channel()
    with pytest.raises(CodecError, match='frame 1 is missing'):
        channel.receive(Frame(2, 0, 'enter', ''))
    with pytest.raises(CodecError, match='not sent'):
        channel.receive(Frame(1, 5, 'enter', ''))


def test_a_side_without_acknowledgements_has_no_room_for_more() -> None:
    channel = Channel()
    for _ in range(MAX_UNSEEN):
        assert channel.has_room
        channel.send('tell', '')
    assert not channel.has_room
    channel.receive(Frame(1, MAX_UNSEEN, 'reply', ''))
    assert channel.has_room
