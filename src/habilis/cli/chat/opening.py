"""Find a recorded conversation, and the options to go on with it."""

import os
from dataclasses import replace

from habilis.assistant.records import Recorded, find_newest, find_recorded, not_recorded
from habilis.cli.run.request import CommandRequest
from habilis.core.errors import JournalError
from habilis.journal import Store


async def recorded_chat(store: Store, user: str, session: str) -> Recorded:
    """The conversation of this id; without one, the newest one that began in this folder.

    Raises `JournalError`, also if another process is in the middle of a turn of it.
    """
    if session:
        found, missing = await find_recorded(store, user, session), not_recorded(session)
    else:
        found = await find_newest(store, user, os.getcwd())
        missing = JournalError('no chat has begun in this folder; `habilis sessions list` lists all conversations')
    if found is None:
        raise missing
    return found


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
        read_only=known.read_only and request.workspace is None,
        checkpoints=request.checkpoints or known.checkpoints,
        delegate=request.delegate or known.delegate,
        tools=request.tools or known.tools,
        mcp=request.mcp or known.mcp,
        library=request.library or known.library,
        skills=request.skills or known.skills,
        packages=request.packages or known.packages,
        network=request.network or known.network,
        download=request.download,
    )
