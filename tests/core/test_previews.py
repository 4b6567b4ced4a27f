"""Short texts of values, and dataclasses that print in short."""

from dataclasses import dataclass, field

import pytest

from habilis.core.previews import FIELD_LENGTH, short_repr, shorten


class Broken:
    """Something that cannot be printed."""

    def __repr__(self) -> str:
        raise RuntimeError('no')


@dataclass(frozen=True, kw_only=True)
class Box:
    """A dataclass with fields of several kinds."""

    name: str
    size: float = 0.0
    things: list[object] = field(default_factory=list[object])
    secret: str = field(default='', repr=False)


VALUES = ['word ' * 1000, [1] * 10_000, {'a': 'b' * 1000}, b'x' * 10**6, 10**10_000, Broken()]


@pytest.mark.parametrize('value', VALUES, ids=lambda value: type(value).__name__)
def test_every_value_has_a_short_text_on_one_line(value: object) -> None:
    text = shorten(value, 50)
    assert 0 < len(text) <= 50
    assert '\n' not in text


def test_only_fields_that_differ_from_their_defaults_are_shown() -> None:
    assert repr(Box(name='a')) != short_repr(Box(name='a')) == "Box(name='a')"
    assert short_repr(Box(name='a', size=1 / 3, things=[1], secret='s')) == "Box(name='a', size=0.3333, things=[1])"


def test_long_fields_are_shortened_and_broken_ones_do_no_harm() -> None:
    text = short_repr(Box(name='n' * 1000, things=[Broken()]))
    assert text.startswith("Box(name='nnn")
    assert len(text) < 3 * FIELD_LENGTH
