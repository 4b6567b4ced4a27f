"""`habilis runs export`."""

import os
import sys
from collections.abc import Sequence

from habilis.agent.durable.training_rows import to_json_lines, training_rows
from habilis.cli.runs.journal import JournalAccess, report_damage, with_journal
from habilis.core.errors import HabilisError
from habilis.journal.copies import export_run
from habilis.journal.lookup import info_of


class ExportError(HabilisError):
    """The output file cannot be written."""


def export_whole_run(run: str, output: str | None, *, journal: str | None, user: str | None) -> int:
    """Write a whole run, for `import`."""

    async def work(access: JournalAccess) -> int:
        await info_of(access.store, run, access.user)
        _write(await export_run(access.store, run), output)
        return 0

    return with_journal(journal, user, work)


def export_rows(runs: Sequence[str], output: str | None, *, journal: str | None, user: str | None) -> int:
    """Write the steps of runs as JSON lines; of all runs, oldest first, if none is named."""

    async def work(access: JournalAccess) -> int:
        chosen = list(runs) or [info.run for info in reversed(await access.store.runs(user=access.user))]
        for run in chosen:
            await info_of(access.store, run, access.user)
        code, texts = 0, list[str]()
        for run in chosen:
            reading = await access.read(run)
            texts.append(to_json_lines(await training_rows(reading)))
            code = max(code, report_damage(reading))
        _write(''.join(texts), output)
        return code

    return with_journal(journal, user, work)


def _write(text: str, output: str | None) -> None:
    if output is None or output == '-':
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # runs are private
        with os.fdopen(descriptor, 'w', encoding='utf-8', errors='surrogatepass', newline='\n') as file:
            file.write(text)
    except OSError as error:
        msg = f'cannot write {output}: {error.strerror}'
        raise ExportError(msg) from None
