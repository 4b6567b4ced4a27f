"""Options of `habilis map`. Other rooms are imported when the command runs, so that `--help` is fast."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from habilis.cli import options
from habilis.cli.option_groups import LimitOptionsGroup, WorkOptionsGroup, positive, take, takes
from habilis.cli.run.command import OutputTypeName

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

EPILOG = """\b
Each line of TASKS is a task: a JSON string, or an object with "task", "variables" and "id". Each task is a run of its
own, whose id follows from the task and the options: the same command again does what is left to do.

\b
Exit codes:
  0 all answered    1 some failed    2 usage error    3 some without an answer    4 some wait for a person    130 Ctrl-C

\b
Examples:
  habilis map tasks.jsonl --output results.jsonl
  habilis map tasks.jsonl --output results.jsonl --retry
  habilis map tasks.jsonl --app my_program:agent --budget 20 --output results.parquet
  habilis map tasks.jsonl --engine ray --store postgresql://db.example.com/habilis
"""

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


@app.command('map', epilog=EPILOG)
@takes(MapOptionsGroup, LimitOptionsGroup, SharedStoreGroup)
def map_command(
    tasks: Annotated[str, typer.Argument(metavar='TASKS', help='File with one task per line; - for stdin.')],
    **given: Any,
) -> None:
    """Run many tasks with one agent, each once, however often the command is killed and started again."""
    own, limits, work = take(MapOptionsGroup, given), take(LimitOptionsGroup, given), take(SharedStoreGroup, given)
    work.check()
    from habilis.cli.map.execution import execute

    request = work.request(settings=limits.limits, output_type=own.output_type, quiet=own.quiet)
    raise typer.Exit(execute(tasks, own, request))
