"""Makes untrusted text (from a model, code in the sandbox or a tool) safe for terminals, logs and pages.

Terminals execute control characters: an escape sequence can rewrite the screen, the clipboard or the title.
Bidirectional marks can make a line read as something else than it is.
"""

import re

# Colour sequences are removed. All others are shown escaped, because they may be an attack.
_COLOUR = re.compile('\x1b\\[[0-9;:]*m')
_SEQUENCE = re.compile('\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\-_])')
_DIRECTION = '\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069'
_CONTROL = re.compile(f'[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_DIRECTION}]')
_UNSENDABLE = re.compile('[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]')
_SURROGATE = re.compile('[\ud800-\udfff]')
_RETURN = re.compile('\r+\n?')


def escape_controls(text: str) -> str:
    """The text without colour sequences, and with control characters escaped as `\\x1b`."""
    if text.isascii() and text.isprintable():
        return text
    text = _RETURN.sub('\n', _COLOUR.sub('', text))
    return _CONTROL.sub(_escaped, text)


def diff_lines(diff: str) -> list[str]:
    """The lines of a diff, with all control characters escaped: no part of a line looks like another line."""
    return [_CONTROL.sub(_escaped, line) for line in diff.removesuffix('\n').split('\n')] if diff else []


def one_line(text: str, limit: int) -> str:
    """The text on one line, escaped and truncated to `limit` characters."""
    line = ' '.join(escape_controls(text[: 4 * limit]).split())
    is_truncated = len(line) > limit or len(text) > 4 * limit
    return f'{line[: limit - 1]}…' if is_truncated else line


def strip_controls(text: str) -> str:
    """The text without control characters, which some providers reject."""
    text = _UNSENDABLE.sub('', _SEQUENCE.sub('', text))
    return _SURROGATE.sub('\ufffd', text)


def _escaped(found: 're.Match[str]') -> str:
    code = ord(found[0])
    if found[0] == '\r':
        return '\\r'
    return f'\\x{code:02x}' if code < 0x100 else f'\\u{code:04x}'
