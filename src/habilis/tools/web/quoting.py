"""Text of strangers, made safe to show to a model: marked as data, each line quoted, nothing that looks like a mark."""

import re
import unicodedata

_NEEDED = {'\n', '\t', '\u200c', '\u200d'}
"""Line breaks; and the joiners that Persian, Indic scripts and emoji need."""

_MARK = re.compile(r'<(/?[\w!|?][^<>\n]{0,200})>|<(\|)|(\|)>')
_BRACKETED = re.compile(r'\[(?=/?(?:INST|SYS))', re.IGNORECASE)
_FENCE = re.compile(r'`{3,}|~{3,}')


def visible(text: str) -> str:
    """The text without characters that nobody sees: controls, directions, zero widths, tags. Lines end with `\\n`."""
    text = '\n'.join(text.splitlines())
    if text.isascii() and text.replace('\n', '').isprintable():
        return text
    return ''.join(
        letter for letter in text if letter in _NEEDED or unicodedata.category(letter) not in {'Cc', 'Cf', 'Cs', 'Co'}
    )


def unmarked(text: str) -> str:
    """The visible text without what a model, or we, could take for a mark: tags, special tokens, fences."""
    text = _FENCE.sub("'''", visible(text))
    text = _MARK.sub(lambda found: f'‹{found[1]}›' if found[1] else '‹|' if found[2] else '|›', text)
    return _BRACKETED.sub('(', text)


def one_line(text: str, length: int = 300) -> str:
    """The same in one line: a title, a snippet, the words of a link."""
    line = ' '.join(unmarked(text[: 4 * length]).split())
    return line if len(line) <= length else f'{line[: length - 1].rstrip()}…'


def quoted(text: str) -> str:
    """The same with `> ` before each line, so that no line of it can pose as one of ours."""
    return '\n'.join(f'> {line}' for line in unmarked(text).split('\n'))
