"""What a turn has changed in the files of the workspace, in one line."""

import asyncio
from collections.abc import Sequence

from habilis.agent.durable.checkpoints import history_of, read_checkpoints
from habilis.agent.durable.trajectory import read_trajectories
from habilis.agent.hooks.sanitize import one_line
from habilis.journal import Store
from habilis.journal.runs import read_run

MAX_NAMED = 5
MAX_NAME = 60


async def changes_of_turn(store: Store, run: str, user: str) -> str:
    """The files that a run with checkpoints changed, with the lines added and removed; empty if there are none."""
    reading = await read_run(store, run, user=user)
    agents = await read_trajectories(reading)
    stored = [each.checkpoint for each in (await read_checkpoints(reading, agents[0].path) if agents else [])]
    commits = [checkpoint for checkpoint in stored if checkpoint.commit]
    if len(commits) < 2:  # the first one is the start
        return ''
    history = history_of(commits[-1])
    return _describe(await asyncio.to_thread(history.line_counts, commits[0].commit, commits[-1].commit))


def _describe(changes: Sequence[tuple[str, str, str]]) -> str:
    if not changes:
        return ''
    named = [
        f'{one_line(path, MAX_NAME)} {"binary" if added == "-" else f"+{added} −{removed}"}'
        for path, added, removed in changes[:MAX_NAMED]
    ]
    more = [f'{len(changes) - MAX_NAMED} more'] if len(changes) > MAX_NAMED else []
    return f'changed {len(changes):,} {"file" if len(changes) == 1 else "files"}: {", ".join([*named, *more])}'
