"""Text files that the user names, `-` for stdin and stdout."""

import os
import sys

from habilis.core.errors import HabilisError


class FileFailed(HabilisError):
    """The file cannot be read or written."""


def read_text(file: str, what: str) -> str:
    """The text of a file that is `what`, or of stdin for `-`. Raises `FileFailed`."""
    try:
        if file == '-':
            return sys.stdin.buffer.read().decode('utf-8', 'surrogatepass')
        with open(file, 'rb') as opened:
            return opened.read().decode('utf-8', 'surrogatepass')
    except OSError as error:
        msg = f'cannot read {file}: {error.strerror}'
        raise FileFailed(msg) from None
    except UnicodeDecodeError:
        msg = f'{file} is not {what}: it is not text'
        raise FileFailed(msg) from None


def write_text(file: str, text: str) -> None:
    """Write a private file, or to stdout for `-`. Raises `FileFailed`."""
    if file == '-':
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, 'w', encoding='utf-8', errors='surrogatepass', newline='\n') as opened:
            opened.write(text)
    except OSError as error:
        msg = f'cannot write {file}: {error.strerror}'
        raise FileFailed(msg) from None
