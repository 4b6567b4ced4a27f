"""Installation of the embedded model: its weights, and llama.cpp for this processor."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from habilis.core.errors import NoModel
from habilis.models.local import catalogue, store
from habilis.models.local.catalogue import CatalogueEntry
from habilis.models.local.download import Installation, OnMessage, run_on_thread
from habilis.models.local.engine_build import ensure_engine, install_engine
from habilis.models.local.partial_file import Progress

CONFIRM_ABOVE_BYTES = 100_000_000
"""Size above which a download needs confirmation."""


async def install(name: str = '', *, on_progress: Progress | None = None, on_message: OnMessage | None = None) -> Path:
    """Install a model of the catalogue and return its file. A cancelled download can be resumed.

    Raises `DownloadError`. Both callbacks are called on a thread.
    """
    weights = Installation(entry=catalogue.entry(name), on_progress=on_progress, on_message=on_message)
    engine = asyncio.create_task(install_engine(on_message=on_message))
    try:
        path = await run_on_thread(weights)
        await engine
    finally:
        engine.cancel()
    return path


async def ensure_installed(
    name: str = '',
    *,
    ask: Callable[[str], bool] | None = None,
    on_progress: Progress | None = None,
    on_message: OnMessage | None = None,
) -> Path:
    """Return the weights of `local:name`, after installing them if necessary, and llama.cpp for this processor.

    `ask` is called with a question before a large download; None: do not ask. Raises `NoModel` if it returns False.
    """
    if path := store.find(name) if store.looks_like_path(name) else store.installed(name):
        await ensure_engine(on_progress=on_progress, on_message=on_message)
        return path
    entry = catalogue.entry(name)
    if ask is not None and entry.bytes > CONFIRM_ABOVE_BYTES and not await asyncio.to_thread(ask, question(entry)):
        msg = f'{entry.name} was not installed; set a key, start a model server, or run `habilis models install` later'
        raise NoModel(msg)
    return await install(entry.name, on_progress=on_progress, on_message=on_message)


def question(entry: CatalogueEntry) -> str:
    """The question before a download."""
    return f'Download {entry.name} ({entry.size}, {entry.licence}) to {entry.folder}?'
