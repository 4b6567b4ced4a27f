"""The command `habilis map`. Other rooms are imported when the command runs, so that `--help` is fast."""

from typing import Annotated, Any

import typer

from habilis.cli.map.options import MapOptionsGroup, SharedStoreGroup
from habilis.cli.option_groups import LimitOptionsGroup, take, takes

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
