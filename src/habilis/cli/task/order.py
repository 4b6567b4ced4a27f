"""What was ordered at the command line: the task, the data that came with it, and how to do it."""

import os
import select
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import typer

from habilis.core.errors import SettingsError
from habilis.core.settings import Settings, check_model, load_settings
from habilis.models.registry import Overrides

EXAMPLE = 'for example: habilis run "What is the sum of the first 100 primes?"'
PATIENCE = 1.0
"""Seconds of silence after which we say that we wait for stdin."""

OUTPUT_TYPES: Mapping[str, type] = {kind.__name__: kind for kind in (int, float, str, bool, list, dict)}


@dataclass(frozen=True, kw_only=True)
class Order:
    """One call of `habilis run`. None is as not given."""

    task: str
    data: str | None = None
    """What was piped in."""

    model: str | None = None
    overrides: Overrides = field(default_factory=Overrides)
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    workspace: str | None = None
    output_type: str | None = None
    as_json: bool = False
    quiet: bool = False
    download: bool = False
    """Download the embedded model without asking."""

    def load_settings(self) -> Settings:
        """The settings that hold here. Options of ours that are wrong are wrong usage."""
        load_settings()
        try:
            check_model(self.model or 'any', self.overrides)
            return load_settings(None, **self.settings)
        except SettingsError as error:  # without the options all is right
            raise typer.BadParameter(_as_option(str(error))) from None


def read_task(argument: str | None, *, quiet: bool = False) -> tuple[str, str | None]:
    """The task, and the data for it if something was piped in with it."""
    if argument is not None and argument != '-':
        task, data = argument, _read_stdin(quiet=quiet) if _is_piped() else None
    elif argument is None and _is_terminal():
        msg = f'say what to do; {EXAMPLE}'
        raise typer.BadParameter(msg, param_hint='TASK')
    else:
        task, data = _read_stdin(quiet=True), None
    if not task.strip():
        msg = f'the task is empty; {EXAMPLE}'
        raise typer.BadParameter(msg, param_hint='TASK')
    return task, data or None


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def _is_piped() -> bool:
    """Whether stdin is a pipe or a file. A terminal and `/dev/null` bring no data, and neither does a closed one."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _read_stdin(*, quiet: bool) -> str:
    """All of it, as text."""
    if os.name == 'posix' and not quiet and not select.select([0], [], [], PATIENCE)[0]:
        typer.echo(
            'habilis: waiting for stdin, which is data for the task; `< /dev/null` says that there is none', err=True
        )
    try:
        return sys.stdin.buffer.read().decode('utf-8-sig')
    except UnicodeDecodeError:
        msg = 'stdin is not text in UTF-8; put it into a file, and name its folder with --workspace'
        raise typer.BadParameter(msg, param_hint='stdin') from None
    except (OSError, AttributeError):  # it is closed
        return ''


def _as_option(complaint: str) -> str:
    """The complaint about an argument in the words of the command line."""
    name, space, rest = complaint.removeprefix('the argument ').partition(' ')
    return f'--{name.replace("_", "-")}{space}{rest}' if complaint.startswith('the argument ') else complaint
