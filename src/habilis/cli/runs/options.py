"""The subcommand itself, and the options that its commands share."""

from enum import Enum
from typing import Annotated

import typer

from habilis.cli.options import not_empty

EPILOG = """\b
Every run of `habilis run`, of agents and of flows is kept while it goes on. After a limit, a question, Ctrl-C or a
crash it goes on where it stopped: nothing that is in its record is asked, run or called again.

\b
Examples:
  habilis runs list --status interrupted
  habilis runs show run-1f2e3d4c5b6a --step 2
  habilis runs resume run-1f2e3d4c5b6a --max-steps 10
  habilis runs approve run-1f2e3d4c5b6a
  habilis runs fork run-1f2e3d4c5b6a --at 3        again from step 3, as a new run
  habilis runs export --all --format jsonl -o rows.jsonl
  habilis runs prune --older-than 30d --dry-run

\b
Exit codes: 0 done, 1 an error (or runs that differ), 2 wrong usage; of what is gone on with: 3 stopped at a limit,
4 a question or an approval that nobody is there for, 130 Ctrl-C.
"""

app = typer.Typer(
    help='The runs that were kept: look at them, go on with them, take them elsewhere.',
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback()
def runs() -> None:
    """The runs that were kept: look at them, go on with them, take them elsewhere."""


class Shown(Enum):
    """States of runs."""

    queued = 'queued'
    running = 'running'
    interrupted = 'interrupted'
    waiting = 'waiting'
    stopped = 'stopped'
    failed = 'failed'
    done = 'done'


class Change(Enum):
    """What to do where the record no longer fits the code."""

    fail = 'fail'
    go_on = 'continue'
    fork = 'fork'


Run = Annotated[str, typer.Argument(metavar='RUN', help='As `habilis runs list` shows it.', show_default=False)]
Where = Annotated[
    str | None,
    typer.Option('--journal', metavar='WHERE', help='File, folder or address of the journal; otherwise as it is set.'),
]
User = Annotated[str | None, typer.Option('--user', metavar='NAME', help='Whose runs; otherwise as it is set.')]
AsJson = Annotated[bool, typer.Option('--json', help='Print JSON.')]
App = Annotated[
    str | None,
    typer.Option('--app', metavar='MODULE:NAME', help='The Agent or Flow of the program that made the run.'),
]
NoResume = Annotated[bool, typer.Option('--no-resume', help='Do not go on with the run now.')]
PathOf = Annotated[str | None, typer.Option('--path', metavar='P', help='Which question, if there are several.')]
Quiet = Annotated[bool, typer.Option('--quiet', '-q', help='Show nothing but the answer.')]
ModelName = Annotated[
    str | None,
    typer.Option(
        '--model', '-m', metavar='M', help='Another model than before, as provider:model.', callback=not_empty
    ),
]
Yes = Annotated[bool, typer.Option('--yes', '-y', help='Do not ask.')]
