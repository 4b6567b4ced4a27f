"""`habilis runs export` and `import`."""

from collections.abc import Sequence

from habilis.agent.durable.run_page import run_page
from habilis.agent.durable.training_rows import to_json_lines, training_rows
from habilis.cli.runs.journal import JournalAccess, in_journal, report_damage, with_journal
from habilis.cli.streams import say
from habilis.cli.text_files import read_text, write_text
from habilis.journal.copies import export_run
from habilis.journal.runs import import_foreign_run


@in_journal
async def export_whole_run(access: JournalAccess, run: str, output: str) -> int:
    """Write a whole run, for `import`."""
    write_text(output, await export_run(access.store, await access.resolve(run)))
    return 0


@in_journal
async def export_page(access: JournalAccess, run: str, output: str) -> int:
    """Write a run as an HTML file, to be shared."""
    reading = await access.read(run)
    write_text(output, await run_page(reading))
    return report_damage(access, reading)


@in_journal
async def export_rows(access: JournalAccess, runs: Sequence[str], output: str) -> int:
    """Write the steps of runs as JSON lines; of all runs, oldest first, if none is named."""
    named = dict.fromkeys([await access.resolve(run) for run in runs])
    chosen = list(named) or [info.run for info in reversed(await access.store.runs(user=access.user))]
    code, texts = 0, list[str]()
    for run in chosen:
        reading = await access.read(run)
        texts.append(to_json_lines(await training_rows(reading)))
        code = max(code, report_damage(access, reading))
    write_text(output, ''.join(texts))
    return code


def import_run(file: str, run_id: str | None, *, journal: str | None, user: str | None) -> int:
    """Add an exported run to the journal, and print its id."""
    text = read_text(file, 'an exported run')

    async def work(access: JournalAccess) -> int:
        info = await import_foreign_run(access.store, text, run=run_id, user=access.user)
        print(info.run, flush=True)
        say(f'{info.status}; show it with: {access.command("show", info.run)}')
        return 0

    return with_journal(journal, user, work, create=True)
