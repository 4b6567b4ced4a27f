"""`habilis models`: show which model is used; list, install and remove embedded models."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from habilis.cli.options import AsJson, Yes, command_group
from habilis.cli.streams import say

if TYPE_CHECKING:
    from habilis.models.discovery import Choice
    from habilis.models.local.catalogue import CatalogueEntry

EPILOG = """\b
Examples:
  habilis models                           show which model is used, and why
  habilis models list                      list embedded models
  habilis models install                   install the default model
  habilis models install qwen2.5-coder-0.5b --yes

\b
Weights are stored in the cache folder (HABILIS_CACHE). An interrupted download is resumed.
Exit codes: 0 success, 1 error, 2 usage error, 130 Ctrl-C.
"""

app = command_group(
    'Show which model is used; list, install and remove embedded models.', EPILOG, no_args_is_help=False
)

Name = Annotated[str, typer.Argument(metavar='NAME', help='Name of the model.', show_default=False)]
OptionalName = Annotated[
    str, typer.Argument(metavar='NAME', help='Name of the model.', show_default='the default model')
]


@app.callback(invoke_without_command=True)
def models(context: typer.Context, as_json: AsJson = False) -> None:
    """Show which model is used; list, install and remove embedded models."""
    if context.invoked_subcommand is None:
        _show_choices(as_json=as_json)


@app.command('list')
def list_(as_json: AsJson = False) -> None:
    """List the embedded models."""
    from habilis.cli.printing import print_json
    from habilis.models.local import catalogue, store

    used = _name_in_use()
    if as_json:
        rows = [
            {'name': entry.name, 'bytes': entry.bytes, 'licence': entry.licence, 'is_used': entry.name == used}
            | {'is_installed': bool(store.installed(entry.name))}
            for entry in catalogue.entries()
        ]
        print_json(rows)
        return
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
    name: OptionalName = '',
    yes: Yes = False,
) -> None:
    """Download a model, or resume an interrupted download."""
    from habilis.models.local import store
    from habilis.models.local.installation import CONFIRM_ABOVE_BYTES

    entry = _entry(name)
    installed = store.installed(entry.name)
    if installed is None and entry.bytes > CONFIRM_ABOVE_BYTES and not yes:
        _confirm_download(entry)
    typer.echo(_download(entry))


@app.command()
def rm(name: Name) -> None:
    """Delete the weights of a model, and its partial download."""
    from habilis.core.previews import format_size
    from habilis.models.local import store

    entry = _entry(name)
    freed = store.remove(entry.name)
    if not freed:
        say(f'{entry.name} is not installed')
        raise typer.Exit(1)
    typer.echo(f'removed {entry.name}, freed {format_size(freed)}')


@app.command()
def path(name: OptionalName = '') -> None:
    """Print the path of an installed model."""
    from habilis.models.local import store

    typer.echo(store.find(_entry(name).name))


def _entry(name: str) -> 'CatalogueEntry':
    from habilis.core.errors import ModelNotFound
    from habilis.models.local import catalogue

    try:
        return catalogue.entry(name.removeprefix('local:'))
    except ModelNotFound as error:
        raise typer.BadParameter(str(error), param_hint='NAME') from None


def _confirm_download(entry: 'CatalogueEntry') -> None:
    """Exit unless the user agrees to the download."""
    from habilis.models.local.installation import question

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say(f'this downloads {entry.size} and there is no terminal to confirm; use --yes')
        raise typer.Exit(2)
    if not typer.confirm(question(entry), default=True, err=True):
        typer.echo('Nothing downloaded.', err=True)
        raise typer.Exit(1)


def _download(entry: 'CatalogueEntry') -> Path:
    """Download a model, with a progress bar on a terminal."""
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
        typer.echo(f'Interrupted. Resume with: habilis models install {entry.name}', err=True)
        raise


def _choices() -> 'list[Choice]':
    from habilis.cli.settings import read_settings
    from habilis.models.discovery import check_server, discover_all

    async def find() -> 'list[Choice]':
        choices = await discover_all(read_settings())
        return [await check_server(choice) if choice.named else choice for choice in choices]

    return asyncio.run(find())


def _name_in_use() -> str | None:
    first = _choices()[0].config
    return first.model_name if first.provider == 'local' else None


def _show_choices(*, as_json: bool) -> None:
    """Print the models found; the one in use comes first."""
    from habilis.cli.printing import print_json

    choices = _choices()
    if as_json:
        print_json([{'model': each.config.model, 'ready': each.ready, 'why': each.reason} for each in choices])
        return
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
        typer.echo(f'Using {first.config.model}: {first.reason}.')
    else:
        typer.echo(f'No model available: {first.reason}.')


def _print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        typer.echo('  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
