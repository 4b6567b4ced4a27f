"""`habilis runs import`."""

import sys

from habilis.cli.runs.journal import JournalAccess, with_journal
from habilis.cli.streams import say
from habilis.core.errors import HabilisError
from habilis.journal.runs import import_foreign_run


class ImportFileError(HabilisError):
    """The file cannot be read."""


def import_run(file: str, run_id: str | None, *, journal: str | None, user: str | None) -> int:
    """Add an exported run to the journal, and print its id."""
    text = _read(file)

    async def work(access: JournalAccess) -> int:
        info = await import_foreign_run(access.store, text, run=run_id, user=access.user)
        print(info.run, flush=True)
        say(f'{info.status}; show it with: {access.command("show", info.run)}')
        return 0

    return with_journal(journal, user, work, create=True)


def _read(file: str) -> str:
    try:
        if file == '-':
            return sys.stdin.buffer.read().decode('utf-8', 'surrogatepass')
        with open(file, 'rb') as opened:
            return opened.read().decode('utf-8', 'surrogatepass')
    except OSError as error:
        msg = f'cannot read {file}: {error.strerror}'
        raise ImportFileError(msg) from None
    except UnicodeDecodeError:
        msg = f'{file} is not an exported run: it is not text'
        raise ImportFileError(msg) from None
