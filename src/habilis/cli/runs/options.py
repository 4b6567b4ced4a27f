"""Options that the subcommands of `habilis runs` share."""

from enum import Enum
from typing import Annotated, Literal

import typer

from habilis.cli.options import folder, not_empty


class RunState(Enum):
    """States of a run. An option that is repeated cannot have a `Literal`."""

    queued = 'queued'
    running = 'running'
    interrupted = 'interrupted'
    waiting = 'waiting'
    stopped = 'stopped'
    failed = 'failed'
    done = 'done'


OnChange = Literal['fail', 'continue', 'fork']
ExportFormat = Literal['run', 'jsonl']
RUN_HELP = 'Id of the run, the start of its id, or last for the newest.'
RunId = Annotated[str, typer.Argument(metavar='RUN', help=RUN_HELP, show_default=False)]
User = Annotated[
    str | None, typer.Option('--user', metavar='NAME', help='Owner of the runs (default: from the settings).')
]
App = Annotated[
    str | None,
    typer.Option('--app', metavar='MODULE:NAME', help='Agent, Flow or Workflow of the program that made the run.'),
]
NoResume = Annotated[bool, typer.Option('--no-resume', help='Do not resume the run.')]
ForkStep = Annotated[
    str | None,
    typer.Option(
        '--at',
        metavar='STEP',
        help='Number of a step as in `show`, or the path of a flow step (default: the last step).',
    ),
]
ForkRecord = Annotated[
    int | None,
    typer.Option('--before', metavar='N', help='Number of a record as in `events`, such as a damaged one.'),
]
ForkEdit = Annotated[
    str | None,
    typer.Option(
        '--edit',
        metavar='TEXT',
        help='Keep that step, with this code instead; the path of a call gets this result, that of an agent this task.',
    ),
]
ForkWorkspace = Annotated[
    str | None,
    typer.Option(
        '--workspace',
        '-w',
        metavar='DIR',
        help='Empty folder for the files of that step, of a run with checkpoints (default: the folder of the run).',
        callback=folder,
    ),
]
QuestionPath = Annotated[
    str | None, typer.Option('--path', metavar='PATH', help='Path of the question, if several are pending.')
]
ModelName = Annotated[
    str | None,
    typer.Option(
        '--model',
        '-m',
        metavar='MODEL',
        help='Model as provider:model (default: the model of the run).',
        callback=not_empty,
    ),
]
FurtherSteps = Annotated[
    int | None,
    typer.Option(
        '--max-steps', metavar='N', help='Maximum number of further model replies (default: as before).', min=1
    ),
]
Workspace = Annotated[
    str | None,
    typer.Option(
        '--workspace',
        '-w',
        metavar='DIR',
        help='Folder the code may read and write (default: the folder of the run).',
        callback=folder,
    ),
]
ChangeAction = Annotated[
    OnChange,
    typer.Option('--on-change', help='If the record no longer matches the code: fail, continue from there, or fork.'),
]
