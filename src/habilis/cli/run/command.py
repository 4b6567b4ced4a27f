"""Options of `habilis run`. Other rooms are imported when the command runs, so that `--help` is fast."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from habilis.cli import options
from habilis.cli.option_groups import LimitOptionsGroup, WorkOptionsGroup, take, takes
from habilis.cli.run.task_input import read_files, read_task

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

EPILOG = """\b
The answer goes to stdout, everything else to stderr. Without TASK, or with -, the task is read from stdin. With TASK,
stdin is data: the code reads it from the variable `stdin`.

\b
Exit codes:
  0 answered    1 error of the model or the sandbox    2 usage error
  3 limit reached    4 question or approval pending    130 Ctrl-C
Runs are recorded: after 1, 3, 4, 130 or a crash, `habilis runs resume` continues the run.

\b
Examples:
  habilis run "How many days are there between 3 May 1987 and today?"
  habilis run "Which region sold most?" < sales.csv
  habilis run "Draw the numbers of data.csv as bars into bars.svg" --workspace .
  habilis run "What is the 100th prime?" --model ollama:qwen3 --output-type int --quiet
  habilis run "Which open orders are late?" --tools my_tools:orders --packages tabulate
  habilis run "Sort these words" --json < words.txt | jq .output
"""


OutputTypeName = Literal['int', 'float', 'str', 'bool', 'list', 'dict']


@dataclass(frozen=True, kw_only=True)
class RunOptionsGroup(LimitOptionsGroup):
    """The options that only `habilis run` has."""

    mode: options.Mode = None
    no_network: Annotated[bool, typer.Option('--no-network', help='Allow no connections (the default).')] = False
    output_type: Annotated[OutputTypeName | None, typer.Option('--output-type', help='Type the answer must have.')] = (
        None
    )
    json: Annotated[bool, typer.Option('--json', help='Print the whole result as one JSON object.')] = False
    quiet: options.Quiet = False
    verbose: Annotated[bool, typer.Option('--verbose', '-v', help='Show retries of failed requests, too.')] = False
    temperature: Annotated[
        float | None,
        typer.Option('--temperature', metavar='T', help='Sampling temperature of the model.', min=0, max=2),
    ] = None
    small: Annotated[
        bool | None,
        typer.Option(
            '--small/--no-small', help='Use the policy for small models (default: as declared for the model).'
        ),
    ] = None
    summary: Annotated[bool, typer.Option('--summary', help='Let the model summarize its work at the end.')] = False
    session: Annotated[
        str | None,
        typer.Option('--session', metavar='ID', help='Conversation to start or continue.', callback=options.printable),
    ] = None
    image: Annotated[
        list[str] | None, typer.Option('--image', metavar='FILE', help='Image to show to the model; repeat for more.')
    ] = None
    file: Annotated[
        list[str] | None, typer.Option('--file', metavar='FILE', help='File for the code to read; repeat for more.')
    ] = None
    run_id: Annotated[
        str | None,
        typer.Option('--run-id', metavar='ID', help='Id of the run (default: generated).', callback=options.printable),
    ] = None

    @property
    def settings(self) -> dict[str, object]:
        """What replaces settings."""
        return {**self.limits, 'summary': 'default' if self.summary else None}

    def check(self, work: WorkOptionsGroup) -> None:
        """Refuse what does not fit together."""
        if self.no_network and work.network:
            msg = 'leave out --network or --no-network'
            raise typer.BadParameter(msg, param_hint='--no-network')
        if self.mode is not None and work.workspace is None:
            msg = 'a mode is about the files of a folder: name it with --workspace DIR'
            raise typer.BadParameter(msg, param_hint='--mode')


@app.command(epilog=EPILOG)
@takes(WorkOptionsGroup, RunOptionsGroup)
def run(
    task: Annotated[
        str | None, typer.Argument(metavar='TASK|-', help='Task for the agent.', show_default=False)
    ] = None,
    **given: Any,
) -> None:
    """Run a task: the model writes Python, the sandbox executes it, until there is an answer."""
    work, own = take(WorkOptionsGroup, given), take(RunOptionsGroup, given)
    work.check()
    own.check(work)
    text, data = read_task(task, quiet=own.quiet)
    from habilis.agent.run_spec import run_spec
    from habilis.cli.run.execution import execute

    request = work.request(
        spec=run_spec(
            [text, *read_files(own.image or (), own.file or ())],
            {'variables': {'stdin': data} if data else None, 'session': own.session, 'run_id': own.run_id},
        ),
        overrides={'temperature': own.temperature, 'small': own.small},
        settings=own.settings,
        mode=own.mode,
        output_type=own.output_type,
        as_json=own.json,
        quiet=own.quiet,
        verbose=own.verbose,
    )
    raise typer.Exit(execute(request))
