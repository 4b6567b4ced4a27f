"""`habilis runs keep`, and `/keep` of the chat."""

import contextlib
from collections.abc import Sequence

from habilis.agent.durable.trajectory import read_trajectories
from habilis.cli.library_choice import chosen_library
from habilis.cli.printing import print_json
from habilis.cli.runs.journal import JournalAccess, in_journal
from habilis.core.errors import ForgeError
from habilis.forge.build.kept_runs import FinishedRun, finished_run, keep_runs
from habilis.journal.runs import RunView


@in_journal
async def keep_run(
    access: JournalAccess, runs: Sequence[str], *, name: str, note: str, folder: str | None, as_json: bool
) -> int:
    """Make a tool of runs that did the same."""
    found = [await read_finished(await access.read(run)) for run in runs]
    made = await keep_runs(chosen_library(folder), found, name=name, note=note)
    if as_json:
        print_json(made)
    else:
        print(f'{made.signature}\n{made.name}: version {made.version} is in use; it passes {made.tests} tests')
    return 0


async def others_finished(views: Sequence[RunView]) -> list[FinishedRun]:
    """What those of the runs did that can be kept."""
    found: list[FinishedRun] = []
    for view in views:
        with contextlib.suppress(ForgeError):
            found.append(await read_finished(view))
    return found


async def read_finished(view: RunView) -> FinishedRun:
    """What a recorded run did. Raises `ForgeError` if it cannot be kept."""
    trajectories = await read_trajectories(view)
    if not trajectories:
        msg = f'{view.run} is not the run of an agent'
        raise ForgeError(msg)
    return finished_run(view.run, trajectories[0])
