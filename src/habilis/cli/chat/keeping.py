"""`/keep`: turns that did the same become a tool of the library. The second of such turns is offered."""

import contextlib
from typing import Any

from habilis.agent import Result
from habilis.cli.chat.session import ChatSession
from habilis.cli.library_choice import chosen_library
from habilis.cli.run.request import DEFAULT_LIBRARY
from habilis.cli.runs.keep import others_finished, read_finished
from habilis.core.errors import ForgeError
from habilis.forge.build.kept_runs import FinishedRun, doing_the_same, keep_runs
from habilis.forge.contract import Manifest
from habilis.journal.runs import read_run

_TURNS = 10
"""The newest turns of a chat that are compared."""


async def keep_turns(chat: ChatSession, name: str) -> Manifest:
    """Make a tool of the last turn, and of those that did the same. Raises `ForgeError`."""
    chosen = chat.request.library
    library = chosen_library(None if chosen == DEFAULT_LIBRARY else chosen)
    return await keep_runs(library, await _alike(chat), name=name)


async def keep_offer(chat: ChatSession, result: Result[Any]) -> str:
    """What to say after a turn whose code is like that of one before; empty if there is nothing to offer."""
    if any(step.calls for step in result.steps) or not any(step.code for step in result.steps):
        return ''
    with contextlib.suppress(ForgeError):
        if len(await _alike(chat)) == 2:
            return 'two turns did the same with other values: /keep makes a tool of them'
    return ''


async def _alike(chat: ChatSession) -> list[FinishedRun]:
    """The last turn, and those that did the same."""
    session = chat.session
    listed = (await session.runs())[:_TURNS]
    views = [await read_run(session.store, one.info.run, user=session.memory.user) for one in listed]
    if not views:
        msg = 'there is no turn to keep'
        raise ForgeError(msg)
    return doing_the_same([await read_finished(views[0]), *await others_finished(views[1:])])
