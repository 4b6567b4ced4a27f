"""`habilis memory export` and `habilis memory import`."""

import os
import sys

from habilis.cli.memory.opening import with_memory
from habilis.cli.printing import print_json
from habilis.cli.streams import say
from habilis.core.errors import RememberError
from habilis.memory import Memory


def export_memory(file: str, where: str | None, user: str | None) -> int:
    """Write everything of the user to a file, or to stdout."""

    async def work(memory: Memory) -> int:
        lines = await memory.export()
        text = ''.join(f'{line}\n' for line in lines)
        if file == '-':
            print(text, end='')
        else:
            _write(file, text)
            say(f'exported {len(lines) - 1} entries and tasks to {file}')
        return 0

    return with_memory(where, user, work)


def _write(file: str, text: str) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, 'w', encoding='utf-8') as opened:
            opened.write(text)
    except OSError as error:
        msg = f'cannot write {file}: {error.strerror}'
        raise RememberError(msg) from None


def import_memory(file: str, where: str | None, user: str | None, *, as_json: bool) -> int:
    """Add the entries of an export."""
    lines = _read(file).splitlines()

    async def work(memory: Memory) -> int:
        added = await memory.import_lines(lines)
        if as_json:
            print_json({'added': added})
        else:
            say(f'imported {added} entries and tasks; the others were there already')
        return 0

    return with_memory(where, user, work)


def _read(file: str) -> str:
    try:
        if file == '-':
            return sys.stdin.buffer.read().decode()
        with open(file, encoding='utf-8') as opened:
            return opened.read()
    except OSError as error:
        msg = f'cannot read {file}: {error.strerror}'
        raise RememberError(msg) from None
    except UnicodeDecodeError:
        msg = f'{file} is not an export of a memory: it is not text'
        raise RememberError(msg) from None
