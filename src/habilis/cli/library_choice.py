"""The tool library that a command works with."""

from habilis.cli.settings import read_settings, settings_with_options
from habilis.forge.library.library import Library
from habilis.forge.library.stored import stored_library


def chosen_library(folder: str | None) -> Library:
    """The library of the option, of the settings, or of the data folder."""
    return stored_library(read_settings(lambda: settings_with_options({'library': folder})))
