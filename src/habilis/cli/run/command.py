"""Options of `habilis run`. What it needs of Habilis is imported when it runs."""

import math
from enum import Enum
from typing import Annotated

import typer

from habilis.cli import options

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

EPILOG = """\b
The answer goes to stdout, all else to stderr. Without a task, or with -, the task is read from stdin. With a task, what
is piped in is data: the code finds it in the variable `stdin`.

\b
Exit codes:
  0 an answer    1 an error of the model or the sandbox    2 wrong usage
  3 stopped at a limit    4 a question that nobody is there to answer    130 Ctrl-C
A run is kept as it goes: after 1, 3, 4, 130 or a crash, `habilis runs resume` goes on with it.

\b
Examples:
  habilis run "How many days are there between 3 May 1987 and today?"
  habilis run "Which region sold most?" < sales.csv
  habilis run "Draw the numbers of data.csv as bars into bars.svg" --workspace .
  habilis run "What is the 100th prime?" --model ollama:qwen3 --output-type int --quiet
  habilis run "Sort these words" --json < words.txt | jq .output
"""


class Kind(Enum):
    """What an answer can be made to be."""

    int = 'int'
    float = 'float'
    str = 'str'
    bool = 'bool'
    list = 'list'
    dict = 'dict'


def _above_zero(value: float | None) -> float | None:
    if value is not None and not (value > 0 and math.isfinite(value)):
        msg = f'it must be a number above zero, not {value:g}'
        raise typer.BadParameter(msg)
    return value


ModelName = Annotated[
    str | None,
    typer.Option(
        '--model',
        '-m',
        metavar='M',
        help='provider:model or an alias; otherwise what is set or found.',
        callback=options.not_empty,
    ),
]
Yes = Annotated[bool, typer.Option('--yes', '-y', help='Download the embedded model without asking.')]
Quiet = Annotated[bool, typer.Option('--quiet', '-q', help='Show nothing but the answer.')]


@app.command(epilog=EPILOG)
def run(
    task: Annotated[
        str | None, typer.Argument(metavar='TASK|-', help='What to do, in words.', show_default=False)
    ] = None,
    model: ModelName = None,
    sandbox: Annotated[str | None, typer.Option('--sandbox', metavar='B', help='Where the code runs; wasm.')] = None,
    workspace: Annotated[
        str | None,
        typer.Option(
            '--workspace',
            '-w',
            metavar='DIR',
            help='Folder that the code may read and write; none.',
            callback=options.folder,
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option('--max-steps', metavar='N', help='Most replies; 20.', callback=_above_zero)
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option('--max-seconds', metavar='S', help='Most time; no limit.', callback=_above_zero)
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option('--max-cost', metavar='USD', help='Most dollars; no limit.', callback=_above_zero)
    ] = None,
    output_type: Annotated[Kind | None, typer.Option('--output-type', help='What the answer must be.')] = None,
    json: Annotated[bool, typer.Option('--json', help='Print one JSON object with all of the result.')] = False,
    quiet: Quiet = False,
    yes: Yes = False,
    temperature: Annotated[
        float | None, typer.Option('--temperature', metavar='T', help='Of the model, 0 to 2.', min=0, max=2)
    ] = None,
    base_url: Annotated[
        str | None, typer.Option('--base-url', metavar='URL', help='Of an OpenAI-compatible server.')
    ] = None,
    summary: Annotated[bool, typer.Option('--summary', help='Let the model sum up at the end what it did.')] = False,
    journal: Annotated[
        str | None,
        typer.Option('--journal', metavar='WHERE', help='Where it is kept: a file, an address, or off.'),
    ] = None,
    user: Annotated[str | None, typer.Option('--user', metavar='NAME', help='Whose run it is.')] = None,
    session: Annotated[
        str | None,
        typer.Option(
            '--session', metavar='ID', help='Conversation to go on with, or to begin.', callback=options.printable
        ),
    ] = None,
    run_id: Annotated[
        str | None, typer.Option('--run-id', metavar='ID', help='A name for the run.', callback=options.printable)
    ] = None,
) -> None:
    """Do a task: the model writes Python, which runs in a sandbox, until it has the answer."""
    from habilis.cli.run.request import Order, read_task
    from habilis.cli.run.execution import run_order

    if base_url is not None and model is None:
        msg = 'name the model that this server has, with --model'
        raise typer.BadParameter(msg, param_hint='--base-url')
    text, data = read_task(task, quiet=quiet)
    order = Order(
        task=text,
        data=data,
        model=model,
        overrides={'temperature': temperature, 'base_url': base_url},
        settings={
            'sandbox': sandbox,
            'max_steps': max_steps,
            'max_seconds': max_seconds,
            'max_cost': max_cost,
            'summary': 'default' if summary else None,
            'journal': journal,
            'user': user,
        },
        workspace=workspace,
        output_type=output_type.value if output_type else None,
        as_json=json,
        quiet=quiet,
        download=yes,
        session=session,
        run_id=run_id,
    )
    raise typer.Exit(run_order(order))
