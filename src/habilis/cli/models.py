"""`habilis models`: which model would be used and why, and the weights of the embedded ones."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from habilis.models.discovery import Choice
    from habilis.models.local.catalogue import Entry

EPILOG = """\b
Examples:
  habilis models                           which model would be used, and why
  habilis models list                      what can be installed
  habilis models install                   the default one
  habilis models install qwen2.5-coder-0.5b --yes

\b
Weights are kept in the cache folder (HABILIS_CACHE). An interrupted download goes on where it stopped.
Exit codes: 0 done, 1 it failed, 2 wrong usage, 130 Ctrl-C.
"""

app = typer.Typer(
    help='Which model would be used and why; list, install and remove embedded models.',
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Name = Annotated[str, typer.Argument(metavar='NAME', help='As `habilis models list` shows it.', show_default=False)]
MaybeName = Annotated[
    str, typer.Argument(metavar='NAME', help='As `habilis models list` shows it.', show_default='the default model')
]


@app.callback(invoke_without_command=True)
def models(context: typer.Context) -> None:
    """Which model would be used and why; list, install and remove embedded models."""
    if context.invoked_subcommand is None:
        _show_choices()


@app.command('list')
def list_() -> None:
    """The models that can be installed."""
    from habilis.models.local import catalogue, store

    used = _name_in_use()
    _print_table(
        ('NAME', 'SIZE', 'LICENCE', 'INSTALLED', ''),
        [
            (
                entry.name,
                entry.size,
                entry.licence,
                'yes' if store.installed(entry.name) else 'no',
                'in use' if entry.name == used else '',
            )
            for entry in catalogue.entries()
        ],
    )


@app.command()
def install(
    name: MaybeName = '',
    yes: Annotated[bool, typer.Option('--yes', '-y', help='Do not ask before a large download.')] = False,
) -> None:
    """Download a model, or go on with a download that was interrupted."""
    from habilis.models.local import store
    from habilis.models.local.installation import CONFIRM_ABOVE_BYTES

    entry = _entry(name)
    there = store.installed(entry.name)
    if there is None and entry.bytes > CONFIRM_ABOVE_BYTES and not yes:
        _ask(entry)
    typer.echo(there or _download(entry))


@app.command()
def remove(name: Name) -> None:
    """Delete the weights of a model, and what is left of an interrupted download."""
    from habilis.models.local import store
    from habilis.models.local.catalogue import format_size

    entry = _entry(name)
    freed = store.remove(entry.name)
    if not freed:
        typer.echo(f'habilis: {entry.name} is not installed', err=True)
        raise typer.Exit(1)
    typer.echo(f'{entry.name} removed, {format_size(freed)} freed')


@app.command()
def path(name: MaybeName = '') -> None:
    """Print where the weights of an installed model are."""
    from habilis.models.local import store

    typer.echo(store.find(_entry(name).name))


def _entry(name: str) -> 'Entry':
    from habilis.core.errors import ModelNotFound
    from habilis.models.local import catalogue

    try:
        return catalogue.entry(name.removeprefix('local:'))
    except ModelNotFound as error:
        raise typer.BadParameter(str(error), param_hint='NAME') from None


def _ask(entry: 'Entry') -> None:
    """Ends the command unless the answer is yes."""
    from habilis.models.local.installation import question

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        msg = f'habilis: this would download {entry.size}, and there is no terminal to ask at; --yes agrees to it'
        typer.echo(msg, err=True)
        raise typer.Exit(2)
    if not typer.confirm(question(entry), default=True, err=True):
        typer.echo('Nothing was downloaded.', err=True)
        raise typer.Exit(1)


def _download(entry: 'Entry') -> Path:
    """With a bar that moves, where somebody can see it."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from habilis.models.local.installation import install as get

    console = Console(stderr=True, highlight=False, markup=False)
    columns = (
        TextColumn('{task.description}'),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task(entry.name, total=entry.bytes)
            return asyncio.run(
                get(
                    entry.name,
                    on_progress=lambda done, total: bar.update(task, completed=done, total=total),
                    on_message=lambda text: console.print(f'habilis: {text}', soft_wrap=True),
                )
            )
    except KeyboardInterrupt:
        typer.echo(f'Interrupted. `habilis models install {entry.name}` goes on where it stopped.', err=True)
        raise


def _choices() -> 'list[Choice]':
    from habilis.cli.task.showing import read_settings
    from habilis.models.discovery import discover_all

    return asyncio.run(discover_all(read_settings()))


def _name_in_use() -> str | None:
    first = _choices()[0].config
    return first.model_name if first.provider == 'local' else None


def _show_choices() -> None:
    """What was found, the one that would be used first."""
    choices = _choices()
    _print_table(
        ('', 'MODEL', 'READY', 'WHY'),
        [
            ('→' if choice is choices[0] else '', choice.config.model, 'yes' if choice.ready else 'no', choice.reason)
            for choice in choices
        ],
    )
    first = choices[0]
    typer.echo()
    if first.ready:
        typer.echo(f'{first.config.model} would be used: {first.reason}.')
    else:
        typer.echo(f'No model is ready: {first.reason}.')


def _print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        typer.echo('  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
