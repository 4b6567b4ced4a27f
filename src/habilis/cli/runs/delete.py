"""`habilis runs delete`."""

import shutil
from collections.abc import Sequence

from habilis.agent.hooks.sanitize import one_line
from habilis.cli.options import confirm_deletion
from habilis.cli.pictures import run_pictures
from habilis.cli.runs.journal import JournalAccess, in_journal
from habilis.cli.streams import say
from habilis.core.errors import JournalError
from habilis.journal import RunInfo
from habilis.journal.runs import delete_run

MAX_NAMED = 3
"""Max runs named in a message; if there are more, it has only their number."""

MAX_TITLE_CHARS = 40


@in_journal
async def delete_runs(access: JournalAccess, runs: Sequence[str], *, yes: bool) -> int:
    """Delete runs after confirmation; none if one of them does not exist."""
    known = list(dict.fromkeys([await access.resolve(run) for run in runs]))
    return await confirm_and_delete(access, [await access.store.info(run) for run in known], yes=yes)


async def confirm_and_delete(access: JournalAccess, runs: Sequence[RunInfo], *, yes: bool) -> int:
    """Delete runs, after asking unless `yes`. Returns the exit code."""
    what = _names(runs) if len(runs) <= MAX_NAMED else count_runs(len(runs))
    if not confirm_deletion(f'Delete {what} permanently?', yes=yes):
        return 1
    deleted: list[RunInfo] = []
    for info in runs:
        try:
            await delete_run(access.store, info.run, user=access.user)
            shutil.rmtree(run_pictures(info.run), ignore_errors=True)
            deleted.append(info)
        except JournalError as error:
            say(str(error))
    names = f': {_names(deleted)}' if 1 <= len(deleted) <= MAX_NAMED else ''
    say(f'deleted {count_runs(len(deleted))}{names}')
    return 0 if len(deleted) == len(runs) else 1


def _names(runs: Sequence[RunInfo]) -> str:
    """Ids and titles, because the user may have typed only the start of an id."""
    return ', '.join(f'{one_line(info.run, 100)} ({one_line(info.title, MAX_TITLE_CHARS)})' for info in runs)


def count_runs(number: int) -> str:
    """`1 run`, `2 runs`."""
    return f'{number} {"run" if number == 1 else "runs"}'
