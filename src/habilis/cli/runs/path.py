"""`habilis runs path`."""

from habilis.cli.runs.journal import JournalAccess, path_of, with_journal
from habilis.core.secrets import redact


def print_path(*, journal: str | None, user: str | None) -> int:
    """Print the file, folder or URL of the journal, without its password."""

    async def work(access: JournalAccess) -> int:
        print(path_of(access.store) or redact(access.settings.journal or ''))
        return 0

    return with_journal(journal, user, work, create=True)
