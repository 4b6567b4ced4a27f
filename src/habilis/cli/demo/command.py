"""Options of `habilis demo`. What it needs of Habilis is imported when it runs."""

from enum import Enum
from typing import Annotated

import typer

from habilis.cli.options import not_empty
from habilis.cli.run.command import ModelName, Yes

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

EPILOG = """\b
  1 one model, one sandbox: a sum
  2 one model, two sandboxes: a file made in one is read in the other
  3 two models, one sandbox: one plans, the other carries it out

\b
Each demo checks its own result. The exit code is 0 if all are right and 1 if not.

\b
Examples:
  habilis demo
  habilis demo 2 --model ollama:qwen3
  habilis demo 3 --model openai:gpt-5-mini --planner anthropic:claude-sonnet-4-5
  habilis demo --scripted                  without any model; says so
"""


class Which(Enum):
    """Which to play."""

    one = '1'
    two = '2'
    three = '3'
    all = 'all'


@app.command(epilog=EPILOG)
def demo(
    which: Annotated[Which, typer.Argument(help='Which to play.')] = Which.all,
    model: ModelName = None,
    planner: Annotated[
        str | None,
        typer.Option(
            '--planner',
            metavar='M',
            help='The second model of demo 3; otherwise another that is found.',
            callback=not_empty,
        ),
    ] = None,
    scripted: Annotated[
        bool, typer.Option('--scripted', help='Play from a script, without a model: nothing is thought by anyone.')
    ] = False,
    quiet: Annotated[
        bool, typer.Option('--quiet', '-q', help='Show only the tasks and the verdicts, not the work.')
    ] = False,
    yes: Yes = False,
) -> None:
    """Three small tasks, solved for real by the model that is there; the embedded one if there is no other."""
    if scripted and (model or planner):
        msg = 'a script has no model; leave out --model and --planner'
        raise typer.BadParameter(msg, param_hint='--scripted')
    from habilis.cli.demo.runner import Program, play_program

    numbers = (1, 2, 3) if which is Which.all else (int(which.value),)
    program = Program(numbers=numbers, model=model, planner=planner, scripted=scripted, quiet=quiet, download=yes)
    raise typer.Exit(play_program(program))
