"""Take back the last turn of a conversation: its run leaves the session, and its files are as before it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from habilis.agent.durable.checkpoints import history_of, read_checkpoints
from habilis.agent.durable.records import Checkpoint
from habilis.agent.durable.trajectory import read_trajectories
from habilis.journal import Journal, Store
from habilis.journal.runs import read_run
from habilis.tools.attempts import on_thread


@dataclass(frozen=True, kw_only=True)
class TakenBack:
    """A turn that was taken back. Its run is in the journal, outside of the session."""

    run: str
    task: str
    meta: dict[str, object]
    """What was given to it as `meta`."""

    files: tuple[str, ...] = ()
    """Files that are as before the turn again; empty without checkpoints."""

    left: tuple[str, ...] = ()
    """Other files that the code of the turn made or changed, and that stay as they are."""

    checkpoint: str = ''
    """Id of the files as they were until now, for `habilis runs restore RUN --at ID`."""


async def take_back(store: Store, run: str, *, user: str | None = None) -> TakenBack:
    """Take a run out of its session. Raises `RunBusy`, or `WorkspaceError` if its files cannot be brought back."""
    view = await read_run(store, run, user=user)
    agents = await read_trajectories(view)
    files: list[str] = []
    checkpoint = ''
    if agents and (stored := [one.checkpoint for one in await read_checkpoints(view, agents[0].path)]):
        checkpoint, files = await on_thread(lambda: _restore(stored, is_complete=view.info.status == 'done'))
    journal = await Journal.open(store, run, user=user)
    try:
        status = 'stopped' if journal.info.status == 'running' else journal.info.status
        journal.info = replace(journal.info, session='')
        await journal.set_status(status, error=journal.info.error)
    finally:
        await journal.close()
    inputs = agents[0].inputs if agents else None
    meta = dict(inputs.meta) if inputs is not None else {}
    cells = [cell for turn in agents[0].turns for cell in turn.cells] if agents else []
    changed = {file.path for cell in cells for file in cell.cell.files}
    return TakenBack(
        run=run,
        task='' if inputs is None else inputs.task,
        meta=meta,
        files=tuple(files),
        left=tuple(sorted(changed.difference(files))),
        checkpoint=checkpoint,
    )


def _restore(stored: Sequence[Checkpoint], *, is_complete: bool) -> tuple[str, list[str]]:
    """Bring back the files that the run has changed; all files, if a checkpoint of its changes may be missing."""
    first, last = stored[0], stored[-1]
    history = history_of(first)
    only = None
    if is_complete and not any(checkpoint.problem for checkpoint in stored):
        only = {path for _, path in history.changes(first.commit, last.commit)}
    return history.restore(first.commit, keep=first.too_large, only=only)
