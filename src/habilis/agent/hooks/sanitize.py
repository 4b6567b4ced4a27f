"""Text that strangers wrote (a model, code in the sandbox, a tool), made harmless for terminals, logs and pages.

A terminal obeys control characters: a printed escape sequence may rewrite the screen, the clipboard or the title. A
reader obeys direction marks: they can make a line say something else than it does.
"""

import re

# What programs print for colour is dropped. Every other sequence is shown, as somebody may have meant harm.
_COLOUR = re.compile('\x1b\\[[0-9;:]*m')
_SEQUENCE = re.compile('\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\-_])')
_DIRECTION = '\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069'
_CONTROL = re.compile(f'[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_DIRECTION}]')
_UNSENDABLE = re.compile('[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]')
_SURROGATE = re.compile('[\ud800-\udfff]')
_RETURN = re.compile('\r+\n?')


def neutral(text: str) -> str:
    """The same text, with nothing in it that a terminal obeys: such characters are shown as `\\x1b`."""
    if text.isascii() and text.isprintable():
        return text
    text = _RETURN.sub('\n', _COLOUR.sub('', text))
    return _CONTROL.sub(_visible, text)


def one_line(text: str, limit: int) -> str:
    """The start of it, on one line, neutral."""
    line = ' '.join(neutral(text[: 4 * limit]).split())
    cut = len(line) > limit or len(text) > 4 * limit
    return f'{line[: limit - 1]}…' if cut else line


def without_controls(text: str) -> str:
    """The same text without characters that mean nothing to a model, and that some providers refuse."""
    text = _UNSENDABLE.sub('', _SEQUENCE.sub('', text))
    return _SURROGATE.sub('\ufffd', text)


def _visible(found: 're.Match[str]') -> str:
    code = ord(found[0])
    return f'\\x{code:02x}' if code < 0x100 else f'\\u{code:04x}'
