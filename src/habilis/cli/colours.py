"""Colours on a terminal."""

import os
from typing import TextIO


def has_colours(stream: TextIO) -> bool:
    """Whether to write colours to this stream."""
    return stream.isatty() and not os.environ.get('NO_COLOR') and os.environ.get('TERM') != 'dumb'


def highlight_last_line(text: str, stream: TextIO) -> str:
    """The text with its last line, which states the error, in red."""
    if not has_colours(stream):
        return text
    above, newline, last = text.rpartition('\n')
    return f'{above}{newline}\033[31m{last}\033[0m'
