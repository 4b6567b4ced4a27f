"""Text of MCP servers. It is untrusted: bounded, without control characters, and without what looks like markup."""

import hashlib
import re

MAX_DESCRIPTION = 1000
MAX_NOTE = 200
"""Maximum number of characters of a tool's description, and of what is said of a parameter."""

_TAG = re.compile(r'<(/?[\w!|?][^<>]{0,200})>')
_FENCE = re.compile(r'`{3,}|~{3,}')
_HEADING = re.compile(r'(?m)^\s*#+\s*')


def clean(text: str | None, length: int = MAX_DESCRIPTION) -> str:
    """The text as a prompt may have it: tags, fences and headings are no longer such."""
    plain = (text or '')[: 4 * length]
    if not plain.isprintable():
        plain = ''.join(letter for letter in plain if letter.isprintable() or letter == '\n')
    plain = _HEADING.sub('', _FENCE.sub("'''", _TAG.sub(r'‹\1›', plain))).strip()
    return plain if len(plain) <= length else f'{plain[: length - 1].rstrip()}…'


def clean_line(text: str | None, length: int = MAX_NOTE) -> str:
    """The same in one line."""
    return clean(' '.join((text or '')[: 4 * length].split()), length)


def fingerprint(said: str) -> str:
    """Changes with all that a server says of a tool."""
    return hashlib.sha256(said.encode()).hexdigest()
