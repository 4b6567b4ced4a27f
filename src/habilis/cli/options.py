"""Checks of what options are given. A value that is wrong is wrong usage, and said before anything is done."""

import os

import typer


def not_empty(value: str | None) -> str | None:
    """Text: an empty one is most often a variable of the shell that is not set."""
    if value is not None and not value.strip():
        msg = 'it is empty'
        raise typer.BadParameter(msg)
    return value


def folder(value: str | None) -> str | None:
    """A folder, or where one can be made."""
    if not_empty(value) is not None and os.path.exists(str(value)) and not os.path.isdir(str(value)):
        msg = f'{value} is a file, not a folder'
        raise typer.BadParameter(msg)
    return value


def printable(value: str | None) -> str | None:
    """A name of a run or a session, which is shown on one line and typed again."""
    if not_empty(value) is not None and not str(value).isprintable():
        msg = f'{value!r} has characters in it that cannot be printed'
        raise typer.BadParameter(msg)
    return value
