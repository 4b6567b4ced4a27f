"""The socket of a service, and its address for people."""

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING

import typer

from habilis.cli.streams import say
from habilis.core.errors import HabilisError

if TYPE_CHECKING:
    from socket import socket

    from habilis.server.settings import HttpSettings


@contextlib.contextmanager
def start_failures(*more: type[Exception]) -> Generator[None]:
    """End the command with the reason why a server cannot start; also after errors of the types `more`."""
    try:
        yield
    except (HabilisError, ImportError, *more) as error:
        say(str(error))
        raise typer.Exit(2) from None


def listening_socket(settings: 'HttpSettings') -> 'socket':
    """A socket for a server; a taken port ends the command."""
    from habilis.server.serve import listen

    try:
        return listen(settings)
    except OSError as error:
        say(f'cannot listen on {settings.host}:{settings.port}: {error.strerror}; choose another --port')
        raise typer.Exit(2) from None


def announced_address(host: str, port: int) -> str:
    """Host and port as in a URL."""
    return f'{f"[{host}]" if ":" in host else host}:{port}'
