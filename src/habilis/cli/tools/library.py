"""The library a subcommand works with."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Concatenate, ParamSpec, TypeVar

from habilis.cli.interrupt import run_interruptible
from habilis.cli.library_choice import chosen_library
from habilis.cli.model_choice import ModelRequest, choose_model
from habilis.cli.printing import print_json
from habilis.cli.settings import read_settings, settings_with_options
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser
from habilis.core.errors import ForgeError
from habilis.forge.library.library import Library
from habilis.models.contract import Model

__all__ = ['clear_errors', 'in_library', 'open_library', 'open_model', 'print_json', 'run_with_library']

P = ParamSpec('P')
T = TypeVar('T')


def open_library(folder: str | None, *, fill: bool = False) -> Library:
    """The library of the option, of the settings, or of the data folder.

    `fill`: a library that no option names, and that is not there yet, gets the tools that come with Habilis.
    """
    library = chosen_library(folder)
    if fill and folder is None and not library.folder.exists():
        from habilis.forge.library.seed_tools import seed

        with clear_errors(library):
            run_interruptible(lambda: seed(library, on_start=lambda count: say(f'first use: testing {count} tools …')))
    return library


def run_with_library(
    folder: str | None,
    work: Callable[[Library], Coroutine[object, object, T]],
    *,
    fill: bool = False,
    last_words: Callable[[], str] | None = None,
) -> T:
    """Run work that uses sandboxes; Ctrl-C ends it cleanly, see `run_interruptible`. `fill` as for `open_library`."""
    library = open_library(folder, fill=fill)
    with clear_errors(library):
        return run_interruptible(lambda: work(library), last_words=last_words)


def in_library(
    work: Callable[Concatenate[Library, P], Coroutine[object, object, int]],
) -> Callable[Concatenate[str | None, P], int]:
    """Makes a subcommand of a function: it is called with `--library`, and gets the library; see `run_with_library`."""

    def run(folder: str | None, /, *args: P.args, **kwargs: P.kwargs) -> int:
        return run_with_library(folder, lambda library: work(library, *args, **kwargs))

    return run


@contextlib.asynccontextmanager
async def open_model(name: str | None, *, download: bool) -> AsyncGenerator[Model]:
    """The model of `--model`, or of the settings; closed at the end."""
    settings = read_settings(lambda: settings_with_options({}))
    wanted = ModelRequest(name=name, option='--model', download=download)
    model = await choose_model(wanted, settings, TerminalUser(), say)
    try:
        yield model
    finally:
        await model.close()


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
