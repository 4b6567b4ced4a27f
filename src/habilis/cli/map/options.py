"""Options of `habilis map`."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from habilis.cli import options
from habilis.cli.option_groups import WorkOptionsGroup, positive
from habilis.cli.run.command import OutputTypeName

EngineName = Literal['local', 'ray', 'dask']


def _workers(value: str) -> str:
    if value != 'auto' and not value.isdecimal():
        msg = f'expected auto or a number, not {value!r}'
        raise typer.BadParameter(msg)
    return value


@dataclass(frozen=True, kw_only=True)
class SharedStoreGroup(WorkOptionsGroup):
    """The options of the agent; the journal must be one that several processes can write."""

    journal: Annotated[
        str | None,
        typer.Option('--store', metavar='URL', help='Store that all workers share (default: the journal setting).'),
    ] = None


@dataclass(frozen=True, kw_only=True)
class MapOptionsGroup:
    """The options that only `habilis map` has."""

    app: Annotated[
        str | None,
        typer.Option('--app', metavar='MODULE:NAME', help='Agent of your program, instead of the options for one.'),
    ] = None
    engine: Annotated[EngineName, typer.Option('--engine', help='Where the runs are executed.')] = 'local'
    workers: Annotated[
        str,
        typer.Option(
            '--workers',
            metavar='N|auto',
            help='Worker processes; auto: one per core. 0: only `habilis worker`, elsewhere.',
            callback=_workers,
        ),
    ] = 'auto'
    limit: Annotated[int, typer.Option('--limit', metavar='N', help='Runs at a time for each worker.', min=1)] = 4
    address: Annotated[
        str | None,
        typer.Option('--address', metavar='ADDRESS', help='Ray or Dask cluster (default: one on this machine).'),
    ] = None
    output: Annotated[
        str,
        typer.Option('--output', '-o', metavar='FILE', help='Results as .jsonl or .parquet; - for stdout.'),
    ] = '-'
    retry: Annotated[bool, typer.Option('--retry', help='Run tasks again that have no answer.')] = False
    budget: Annotated[
        float | None,
        typer.Option('--budget', metavar='USD', help='Start no more runs when all cost so much.', callback=positive),
    ] = None
    output_type: Annotated[OutputTypeName | None, typer.Option('--output-type', help='Type the answers must have.')] = (
        None
    )
    quiet: options.Quiet = False
