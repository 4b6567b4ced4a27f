"""`habilis runs export`."""

import os
import sys
from collections.abc import Sequence

from habilis.agent.durable.training_rows import to_json_lines, training_rows
from habilis.cli.runs.journal import JournalAccess, in_journal, report_damage
from habilis.core.errors import HabilisError
from habilis.journal.copies import export_run


class ExportError(HabilisError):
    """The output file cannot be written."""


@in_journal
async def export_whole_run(access: JournalAccess, run: str, output: str | None) -> int:
    """Write a whole run, for `import`."""
    _write(await export_run(access.store, await access.resolve(run)), output)
    return 0


@in_journal
async def export_rows(access: JournalAccess, runs: Sequence[str], output: str | None) -> int:
    """Write the steps of runs as JSON lines; of all runs, oldest first, if none is named."""
    named = dict.fromkeys([await access.resolve(run) for run in runs])
    chosen = list(named) or [info.run for info in reversed(await access.store.runs(user=access.user))]
    code, texts = 0, list[str]()
    for run in chosen:
        reading = await access.read(run)
        texts.append(to_json_lines(await training_rows(reading)))
        code = max(code, report_damage(access, reading))
    _write(''.join(texts), output)
    return code


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
