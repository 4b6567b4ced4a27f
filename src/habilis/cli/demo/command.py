"""Options of `habilis demo`. Other rooms are imported when the command runs, so that `--help` is fast."""

from typing import Annotated, Literal

import typer

from habilis.cli.options import Download, ModelName, not_empty

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

EPILOG = """\b
Demos:
  1 one model, one sandbox: compute a sum
  2 one model, two sandboxes: write a file in one, read it in the other
  3 two models, one sandbox: one model plans, the other implements the plan

\b
The exit code is 0 if all results are correct, and 1 if not.

\b
Examples:
  habilis demo
  habilis demo 2 --model ollama:qwen3
  habilis demo 3 --model openai:gpt-5-mini --planner anthropic:claude-sonnet-4-5
  habilis demo --scripted                  use scripted replies, without a model
"""


@app.command(epilog=EPILOG)
def demo(
    which: Annotated[Literal['1', '2', '3', 'all'], typer.Argument(help='Which demo to run.')] = 'all',
    model: ModelName = None,
    planner: Annotated[
        str | None,
        typer.Option(
            '--planner',
            metavar='MODEL',
            help='Planner model of demo 3 (default: another model that is found, else the same).',
            callback=not_empty,
        ),
    ] = None,
    scripted: Annotated[bool, typer.Option('--scripted', help='Use scripted replies instead of a model.')] = False,
    quiet: Annotated[bool, typer.Option('--quiet', '-q', help='Print only tasks and results.')] = False,
    yes: Download = False,
) -> None:
    """Run three small tasks with the available model, and check their results."""
    if scripted and (model or planner):
        msg = '--scripted uses no model; leave out --model and --planner'
        raise typer.BadParameter(msg, param_hint='--scripted')
    from habilis.cli.demo.runner import DemoRequest, run_demos

    numbers = (1, 2, 3) if which == 'all' else (int(which),)
    request = DemoRequest(numbers=numbers, model=model, planner=planner, scripted=scripted, quiet=quiet, download=yes)
    raise typer.Exit(run_demos(request))
