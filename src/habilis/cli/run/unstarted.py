"""Runs that failed before anything was done: a wrong key, a server that is not running, a sandbox that cannot start."""

import contextlib

from habilis.core.errors import JournalError
from habilis.core.settings import Settings
from habilis.journal.runs import delete_run
from habilis.journal.stores.urls import OFF, open_store

WORK = frozenset({'done', 'started', 'asked', 'answered'})
"""Records of something that was done, or may have been: a reply, a tool call, a question."""


async def discard_unstarted(settings: Settings, run: str, *, since: float) -> None:
    """Delete the run if its model never replied, so that a command that fails leaves nothing to list or to resume.

    A run that was created before `since` is not of this command: its id was taken.
    """
    if settings.journal == OFF:
        return
    store = open_store(settings.journal)
    try:
        with contextlib.suppress(JournalError):  # it was not created, or the journal is unavailable: nothing to do
            is_new = (await store.info(run)).created >= since
            if is_new and not any(record.kind in WORK for record in await store.load(run)):
                await delete_run(store, run, user=settings.user or '')
    finally:
        await store.close()
