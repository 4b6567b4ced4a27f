"""A file that was dropped on the terminal: its path arrives as pasted text."""

import os
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

MAX_PATH = 4096


def reference_to(text: str) -> str:
    """`@path` for the path of a file, as terminals paste it; empty for other texts.

    Some quote it, some escape spaces, some send a `file://` address. Only a whole path counts: a word that is also
    the name of a file in this folder stays a word.
    """
    text = text.strip()
    if not text or len(text) > MAX_PATH or '\n' in text:
        return ''
    found = next((path for path in _readings(text) if os.path.isabs(path) and os.path.isfile(path)), '')
    if not found or '"' in found:
        return ''
    return f'@"{found}"' if any(character.isspace() for character in found) else f'@{found}'


def _readings(text: str) -> list[str]:
    if text.startswith('file://'):
        return [unquote(urlsplit(text).path)]
    try:
        words = shlex.split(text)
    except ValueError:  # a quote without its end
        words = []
    paths = [text, *(words if len(words) == 1 else [])]
    return [str(Path(path).expanduser()) if path.startswith('~/') else path for path in paths]
