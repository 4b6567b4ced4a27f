"""Options of `habilis run`. Other rooms are imported when the command runs, so that `--help` is fast."""

import math
import os
from typing import Annotated, Literal

import typer

from habilis.cli import backend_options, options
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


def _positive(value: float | None) -> float | None:
    if value is not None and not (value > 0 and math.isfinite(value)):
        msg = f'expected a number above zero, not {value:g}'
        raise typer.BadParameter(msg)
    return value


@app.command(epilog=EPILOG)
def run(
    task: Annotated[
        str | None, typer.Argument(metavar='TASK|-', help='Task for the agent.', show_default=False)
    ] = None,
    model: options.ModelName = None,
    sandbox: options.SandboxName = None,
    sandbox_image: backend_options.Image = None,
    sandbox_url: backend_options.Url = None,
    allow_weak: backend_options.AllowWeak = False,
    workspace: options.Workspace = None,
    create: options.Create = False,
    checkpoints: options.Checkpoints = False,
    mode: options.Mode = None,
    delegate: options.Delegate = False,
    tools: options.Tools = None,
    mcp: options.Mcp = None,
    library: options.Library = None,
    skills: options.Skills = None,
    packages: options.Packages = None,
    network: options.Network = None,
    no_network: Annotated[bool, typer.Option('--no-network', help='Allow no connections (the default).')] = False,
    max_steps: Annotated[
        int | None,
        typer.Option(
            '--max-steps', metavar='N', help='Maximum number of model replies (default: 20).', callback=_positive
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            '--max-seconds',
            metavar='S',
            help='Time limit in seconds (default: 600 with a local model).',
            callback=_positive,
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option('--max-cost', metavar='USD', help='Cost limit in US dollars (default: none).', callback=_positive),
    ] = None,
    output_type: Annotated[
        OutputTypeName | None, typer.Option('--output-type', help='Type the answer must have.')
    ] = None,
    json: Annotated[bool, typer.Option('--json', help='Print the whole result as one JSON object.')] = False,
    quiet: options.Quiet = False,
    verbose: Annotated[bool, typer.Option('--verbose', '-v', help='Show retries of failed requests, too.')] = False,
    yes: options.Download = False,
    temperature: Annotated[
        float | None,
        typer.Option('--temperature', metavar='T', help='Sampling temperature of the model.', min=0, max=2),
    ] = None,
    base_url: options.BaseUrl = None,
    small: Annotated[
        bool | None,
        typer.Option(
            '--small/--no-small', help='Use the policy for small models (default: as declared for the model).'
        ),
    ] = None,
    summary: Annotated[bool, typer.Option('--summary', help='Let the model summarize its work at the end.')] = False,
    journal: options.RunJournal = None,
    user: options.User = None,
    session: Annotated[
        str | None,
        typer.Option('--session', metavar='ID', help='Conversation to start or continue.', callback=options.printable),
    ] = None,
    image: Annotated[
        list[str] | None, typer.Option('--image', metavar='FILE', help='Image to show to the model; repeat for more.')
    ] = None,
    file: Annotated[
        list[str] | None, typer.Option('--file', metavar='FILE', help='File for the code to read; repeat for more.')
    ] = None,
    run_id: Annotated[
        str | None,
        typer.Option('--run-id', metavar='ID', help='Id of the run (default: generated).', callback=options.printable),
    ] = None,
) -> None:
    """Run a task: the model writes Python, the sandbox executes it, until there is an answer."""
    if base_url is not None and model is None:
        msg = 'name a model of this server with --model'
        raise typer.BadParameter(msg, param_hint='--base-url')
    if no_network and network:
        msg = 'leave out --network or --no-network'
        raise typer.BadParameter(msg, param_hint='--no-network')
    workspace = options.existing_folder(workspace, create=create)
    if checkpoints and workspace is None:
        msg = 'give the folder whose files are stored with --workspace DIR'
        raise typer.BadParameter(msg, param_hint='--checkpoints')
    if mode is not None and workspace is None:
        msg = 'a mode is about the files of a folder: name it with --workspace DIR'
        raise typer.BadParameter(msg, param_hint='--mode')
    text, data = read_task(task, quiet=quiet)
    from habilis.agent.run_spec import run_spec
    from habilis.cli.run.execution import execute
    from habilis.cli.run.request import CommandRequest, ToolNames

    request = CommandRequest(
        spec=run_spec(
            [text, *read_files(image or (), file or ())],
            {'variables': {'stdin': data} if data else None, 'session': session, 'run_id': run_id},
        ),
        model=model,
        overrides={'temperature': temperature, 'base_url': base_url, 'small': small},
        settings={
            'sandbox': sandbox,
            'max_steps': max_steps,
            'max_seconds': max_seconds,
            'max_cost': max_cost,
            'summary': 'default' if summary else None,
            'journal': journal,
            'user': user,
        },
        backend=backend_options.BackendOptions(image=sandbox_image, url=sandbox_url, allow_weak=allow_weak),
        workspace=workspace,
        checkpoints=checkpoints,
        mode=mode,
        delegate=delegate,
        tools=ToolNames(names=options.words(tools), folder=os.getcwd()) if tools else None,
        mcp=mcp or (),
        library=library,
        skills=options.words(skills),
        packages=options.words(packages),
        network=options.words(network),
        output_type=output_type,
        as_json=json,
        quiet=quiet,
        verbose=verbose,
        download=yes,
    )
    raise typer.Exit(execute(request))
