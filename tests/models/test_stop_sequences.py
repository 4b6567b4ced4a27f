"""Stop words where the provider has none."""

from hypothesis import given
from hypothesis import strategies as st

from habilis.models.stop_sequences import StopFilter
from tests.cases import each_case


@each_case(
    ('stops', 'text', 'left'),
    [
        (('END',), 'one END two', 'one '),
        (('b', 'a'), 'xxab', 'xx'),
        (('a', 'bab'), 'bab', 'b'),
        (('END',), 'ENDLESS', ''),
        (('END',), 'EN', 'EN'),
        ((), 'all', 'all'),
        (('',), 'all', 'all'),
    ],
)
def test_the_text_ends_before_the_first_stop_word(stops: tuple[str, ...], text: str, left: str) -> None:
    assert StopFilter(stops).truncate(text) == left


def test_what_may_become_a_stop_word_is_held_back() -> None:
    cutter = StopFilter(('END',))
    assert [cutter.feed(bit) for bit in ('a E', 'N', 'x', 'EN', 'D', 'more')] == ['a ', '', 'ENx', '', '', '']
    assert cutter.flush() == ''


SHORT = st.text(alphabet='ab', max_size=4)


@given(st.lists(SHORT, max_size=3), st.lists(SHORT, max_size=8))
def test_bit_by_bit_gives_the_same_as_at_once(stops: list[str], bits: list[str]) -> None:
    cutter = StopFilter(stops)
    shown = ''.join(cutter.feed(bit) for bit in bits) + cutter.flush()
    assert shown == StopFilter(stops).truncate(''.join(bits))
