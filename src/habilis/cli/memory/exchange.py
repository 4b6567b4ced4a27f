"""`habilis memory export` and `habilis memory import`."""

from habilis.cli.memory.opening import with_memory
from habilis.cli.printing import print_json
from habilis.cli.streams import say
from habilis.cli.text_files import read_text, write_text
from habilis.memory import Memory


def export_memory(file: str, where: str | None, user: str | None) -> int:
    """Write everything of the user to a file, or to stdout."""

    async def work(memory: Memory) -> int:
        lines = await memory.export()
        write_text(file, ''.join(f'{line}\n' for line in lines))
        if file != '-':
            say(f'exported {len(lines) - 1} entries and tasks to {file}')
        return 0

    return with_memory(where, user, work)


def import_memory(file: str, where: str | None, user: str | None, *, as_json: bool) -> int:
    """Add the entries of an export."""
    lines = read_text(file, 'an export of a memory').splitlines()

    async def work(memory: Memory) -> int:
        added = await memory.import_lines(lines)
        if as_json:
            print_json({'added': added})
        else:
            say(f'imported {added} entries and tasks; the others were there already')
        return 0

    return with_memory(where, user, work)
