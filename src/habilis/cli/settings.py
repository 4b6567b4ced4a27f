"""Settings for a command: read, with options applied, and with logging configured."""

import contextlib
from collections.abc import Callable, Generator, Mapping

import typer

from habilis.core.errors import SettingsError
from habilis.core.logs import configure_logging, log_to_terminal
from habilis.core.settings import Settings, load_settings
from habilis.journal.stores.urls import open_store

_ARGUMENT = 'the argument '


def read_settings(load: Callable[[], Settings] = load_settings) -> Settings:
    """Load the settings and configure logging. Warnings about the settings go to stderr."""
    log_to_terminal()
    settings = load()
    configure_logging(settings)
    return settings


def settings_with_options(options: Mapping[str, object]) -> Settings:
    """The settings with command-line options applied. An invalid option is a usage error."""
    load_settings()  # errors in files and environment variables are not the fault of an option
    with usage_errors():
        settings = load_settings(None, **options)
        if options.get('journal'):
            open_store(settings.journal)  # validates the URL; does not connect
        return settings


@contextlib.contextmanager
def usage_errors() -> Generator[None]:
    """Turn a `SettingsError` about an argument into a usage error about the option of the same name."""
    try:
        yield
    except SettingsError as error:
        text = str(error)
        if text.startswith(_ARGUMENT):
            name, space, rest = text.removeprefix(_ARGUMENT).partition(' ')
            text = f'--{name.replace("_", "-")}{space}{rest}'
        raise typer.BadParameter(text) from None
