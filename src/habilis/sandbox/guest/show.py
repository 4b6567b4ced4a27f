"""The text of a value: its `repr`, kept within bounds."""

import reprlib

MAX_CHARACTERS = 100_000


class _Bounded(reprlib.Repr):
    """For values too large to be written out: a few items of each level."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 20
        self.maxstring = self.maxother = self.maxlong = 1000


_bounded = _Bounded()


def text_of(value: object, whole: bool) -> str:
    """`repr(value)`; `whole=False` for values known to be huge, which are shown in part."""
    try:
        text = repr(value) if whole else _bounded.repr(value)
    except ValueError as error:
        if type(value) is int:  # too long for Python to write in decimal
            return hex(value)[:MAX_CHARACTERS]
        return _unshowable(value, error)
    except Exception as error:
        return _unshowable(value, error)
    if type(text) is not str:
        text = str.__str__(text)
    if len(text) <= MAX_CHARACTERS:
        return text
    return f'{text[:MAX_CHARACTERS]}… ({len(text) - MAX_CHARACTERS:,} characters more)'


def _unshowable(value: object, error: Exception) -> str:
    return f'<{type(value).__name__} object whose __repr__ raised {type(error).__name__}>'
