"""Options that several commands share, and validators of option values."""

import os
from typing import Annotated

import typer


def not_empty(value: str | None) -> str | None:
    """Refuse an empty value, which usually is an unset shell variable."""
    if value is not None and not value.strip():
        msg = 'the value is empty'
        raise typer.BadParameter(msg)
    return value


def folder(value: str | None) -> str | None:
    """Refuse a path that exists and is not a folder."""
    if not_empty(value) is not None and os.path.exists(str(value)) and not os.path.isdir(str(value)):
        msg = f'{value} is a file, not a folder'
        raise typer.BadParameter(msg)
    return value


def printable(value: str | None) -> str | None:
    """Refuse unprintable characters in a run id or session id."""
    if not_empty(value) is not None and not str(value).isprintable():
        msg = f'{value!r} contains unprintable characters'
        raise typer.BadParameter(msg)
    return value


ModelName = Annotated[
    str | None,
    typer.Option(
        '--model',
        '-m',
        metavar='MODEL',
        help='Model as provider:model, or an alias (default: from the settings, else the first model found).',
        callback=not_empty,
    ),
]
Download = Annotated[bool, typer.Option('--yes', '-y', help='Download the embedded model without asking.')]
Quiet = Annotated[bool, typer.Option('--quiet', '-q', help='Print only the answer.')]
