"""The tool library that a command works with."""

from pathlib import Path

from habilis.cli.settings import read_settings, settings_with_options
from habilis.core.folders import data_folder
from habilis.forge.library.library import Library
from habilis.memory.minilm import find_embedder


def chosen_library(folder: str | None) -> Library:
    """The library of the option, of the settings, or of the data folder."""
    settings = read_settings(lambda: settings_with_options({'library': folder}))
    chosen = Path(settings.library).expanduser() if settings.library else data_folder() / 'library'
    return Library(chosen, embedder=None if settings.embedder == 'off' else find_embedder())
