"""The library a subcommand works with."""

import contextlib
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any, TypeVar

from habilis.cli.interrupt import run_interruptible
from habilis.cli.printing import print_json
from habilis.cli.settings import read_settings, settings_with_options
from habilis.core.errors import ForgeError
from habilis.core.folders import data_folder
from habilis.forge.library import Library

__all__ = ['clear_errors', 'open_library', 'print_json', 'run_with_library']

T = TypeVar('T')


def open_library(folder: str | None) -> Library:
    """The library of the option, of the settings, or of the data folder."""
    settings = read_settings(lambda: settings_with_options({'library': folder}))
    return Library(Path(settings.library).expanduser() if settings.library else data_folder() / 'library')


def run_with_library(folder: str | None, work: Callable[[Library], Coroutine[Any, Any, T]]) -> T:
    """Run work that uses sandboxes; Ctrl-C ends it cleanly."""
    library = open_library(folder)
    with clear_errors(library):
        return run_interruptible(lambda: work(library))


@contextlib.contextmanager
def clear_errors(library: Library) -> Generator[None]:
    """Errors of the disk, such as a read-only folder, as one line."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        msg = f'cannot change the library {library.folder}: {error.strerror}: {error.filename}'
        raise ForgeError(msg) from error
