"""Find a recorded conversation, and how to go on with it."""

import os
from dataclasses import dataclass, replace

from habilis.agent.durable.records import Inputs
from habilis.agent.durable.sessions import check_idle
from habilis.agent.durable.trajectory import read_trajectories
from habilis.cli.chat.recollection import as_said
from habilis.cli.chat.session import TurnNote, Unfinished, sessions_of
from habilis.cli.run.request import CommandRequest
from habilis.core.errors import JournalError
from habilis.journal import RunInfo, Store
from habilis.journal.runs import read_run


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A conversation in the journal."""

    session: str
    run: str
    """Id of its last run."""

    inputs: Inputs | None
    note: TurnNote
    """That of its last run."""

    unfinished: Unfinished | None = None
    cut_short: str = ''
    """Why the last turn is finished at once: its process died, or a call of it waits for an approval. Else empty."""


async def find_recorded(store: Store, user: str, session: str) -> Recorded:
    """The conversation of this id, or the newest one that began in this folder.

    Raises `JournalError`, also if another process is in the middle of a turn of it.
    """
    last = await _last_run(store, user, session)
    await check_idle(store, user, last.session)
    view = await read_run(store, last.run, user=user)
    agents = await read_trajectories(view)
    inputs = agents[0].inputs if agents else None
    ended = view.ended.get('ended')
    is_unfinished = view.state in ('interrupted', 'failed') or (
        view.state in ('stopped', 'waiting') and ended in (None, 'approval')
    )
    waits = 'waits for an approval' if is_unfinished and ended == 'approval' else ''
    unfinished = (
        Unfinished(run=last.run, message='' if inputs is None else as_said(inputs.task)) if is_unfinished else None
    )
    return Recorded(
        session=last.session,
        run=last.run,
        inputs=inputs,
        note=TurnNote.from_meta(inputs.meta if inputs is not None else {}),
        unfinished=unfinished,
        cut_short='was interrupted; finishing it' if view.state == 'interrupted' else waits,
    )


async def _last_run(store: Store, user: str, session: str) -> RunInfo:
    if session:
        found = await store.runs(user=user, session=session)
        missing = f'no such conversation: {session}; `habilis sessions list` lists all'
    else:
        start = sessions_of(os.getcwd())
        found = [run for run in await store.runs(user=user) if run.session.startswith(start)]
        missing = 'no chat has begun in this folder; `habilis sessions list` lists all conversations'
    if not found:
        raise JournalError(missing)
    return found[0]


def with_recorded_options(request: CommandRequest, recorded: Recorded) -> CommandRequest:
    """The options of the last turn, with those that are given now instead of them."""
    inputs = recorded.inputs
    known = inputs and CommandRequest.from_meta(
        inputs.meta,
        model=request.model,
        workspace=request.workspace,
        settings=request.settings,
    )
    if known is None:
        return request
    return replace(
        known,
        overrides=request.overrides if request.model else known.overrides,
        backend=request.backend if request.backend.given or request.settings.get('sandbox') else known.backend,
        checkpoints=request.checkpoints or known.checkpoints,
        delegate=request.delegate or known.delegate,
        tools=request.tools or known.tools,
        library=request.library or known.library,
        packages=request.packages or known.packages,
        network=request.network or known.network,
        download=request.download,
    )
