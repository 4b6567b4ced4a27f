"""Read the task, and the data piped in with it."""

import os
import select
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from habilis.cli.streams import is_piped, say
from habilis.core.status_line import current_status

if TYPE_CHECKING:
    from habilis.models.files import File

EXAMPLE = 'for example: habilis run "What is the sum of the first 100 primes?"'
NOTICE_SECONDS = 1.0
"""Seconds without input after which the user is told that the command waits for stdin."""


def read_task(argument: str | None, *, quiet: bool = False) -> tuple[str, str | None]:
    """The task, and the data from stdin if there is any."""
    if argument is not None and argument != '-':
        task, data = argument, _read_stdin(quiet=quiet) if is_piped() else None
    elif argument is None and _is_terminal():
        msg = f'no task given; {EXAMPLE}'
        raise typer.BadParameter(msg, param_hint='TASK')
    else:
        task, data = _read_stdin(quiet=True), None
    if not task.strip():
        msg = f'the task is empty; {EXAMPLE}'
        raise typer.BadParameter(msg, param_hint='TASK')
    return task, data or None


def read_files(images: Sequence[str], files: Sequence[str]) -> 'tuple[File, ...]':
    """The images and files of the options. One that cannot be read is a usage error."""
    from habilis.models.files import File, Image

    found: list[File] = []
    for kind, option, paths in ((Image, '--image', images), (File, '--file', files)):
        for path in paths:
            try:
                found.append(kind(path))
            except (OSError, ValueError) as error:
                reason = f'{path}: {error.strerror}' if isinstance(error, OSError) else str(error)
                raise typer.BadParameter(reason, param_hint=option) from None
    return tuple(found)


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def _read_stdin(*, quiet: bool) -> str:
    with current_status().paused():  # somebody may be typing
        return _read_text(quiet=quiet)


def _read_text(*, quiet: bool) -> str:
    if os.name == 'posix' and not quiet and not select.select([0], [], [], NOTICE_SECONDS)[0]:
        say('waiting for data on stdin; use `< /dev/null` if there is none')
    try:
        return sys.stdin.buffer.read().decode('utf-8-sig')
    except UnicodeDecodeError:
        msg = 'stdin is not UTF-8 text; save it to a file and share its folder with --workspace'
        raise typer.BadParameter(msg, param_hint='stdin') from None
    except (OSError, AttributeError):  # stdin is closed
        return ''
