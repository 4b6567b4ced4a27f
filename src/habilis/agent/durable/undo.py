"""Take back the last turn of a conversation: its run leaves the session, and its files are as before it."""

from dataclasses import dataclass, replace

from habilis.agent.durable.checkpoints import history_of, read_checkpoints
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


async def take_back(store: Store, run: str, *, user: str | None = None) -> TakenBack:
    """Take a run out of its session. Raises `RunBusy`, or `WorkspaceError` if its files cannot be brought back."""
    view = await read_run(store, run, user=user)
    agents = await read_trajectories(view)
    files: list[str] = []
    if agents and (stored := [one.checkpoint for one in await read_checkpoints(view, agents[0].path)]):
        first, history = stored[0], history_of(stored[0])
        _, files = await on_thread(lambda: history.restore(first.commit, keep=first.too_large))
    journal = await Journal.open(store, run, user=user)
    try:
        status = 'stopped' if journal.info.status == 'running' else journal.info.status
        journal.info = replace(journal.info, session='')
        await journal.set_status(status, error=journal.info.error)
    finally:
        await journal.close()
    inputs = agents[0].inputs if agents else None
    meta = dict(inputs.meta) if inputs is not None else {}
    return TakenBack(run=run, task='' if inputs is None else inputs.task, meta=meta, files=tuple(files))
