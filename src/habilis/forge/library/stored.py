"""The library that agents, commands and servers work with, wherever it is opened."""

from pathlib import Path

from habilis.core.folders import data_folder
from habilis.core.settings import Settings
from habilis.forge.library.library import Library
from habilis.memory.minilm import find_embedder


def stored_library(settings: Settings, folder: Path | None = None) -> Library:
    """The library in a folder, in that of the settings, or in the data folder.

    It is searched by meaning, too, if an embedder is installed and the settings do not turn it off.
    """
    chosen = folder or (Path(settings.library).expanduser() if settings.library else data_folder() / 'library')
    return Library(chosen, embedder=None if settings.embedder == 'off' else find_embedder())
