"""Subcommands of `habilis tasks` and their options. `tasks.py` does the work, and is imported when one runs."""

from typing import Annotated, Literal

import typer

from habilis.cli.memory.options import User, Where
from habilis.cli.options import AsJson, Yes, command_group, not_empty

EPILOG = """\b
Tasks are part of the memory: agents see and change them too, and they are there in the next conversation.

\b
Examples:
  habilis tasks add "Write the report" --due 2030-01-31
  habilis tasks add "Send the report" --after 1
  habilis tasks list
  habilis tasks update 1 --state in_progress
  habilis tasks done 1
"""

app = command_group('List, add, change and delete tasks.', EPILOG)


State = Literal['pending', 'in_progress', 'completed', 'cancelled']
Number = Annotated[int, typer.Argument(metavar='NUMBER', help='Number of the task.', show_default=False)]
Numbers = Annotated[list[int], typer.Argument(metavar='NUMBER', help='Numbers of tasks.', show_default=False)]
Due = Annotated[str | None, typer.Option('--due', metavar='DATE', help='Date such as 2030-01-31.')]
Notes = Annotated[str | None, typer.Option('--notes', metavar='TEXT', help='Notes.')]
After = Annotated[
    list[int] | None,
    typer.Option('--after', metavar='NUMBER', help='Task that must be completed before; can be repeated.'),
]


@app.command('list')
def list_(
    all: Annotated[bool, typer.Option('--all', help='Also completed and cancelled ones.')] = False,
    as_json: AsJson = False,
    memory: Where = None,
    user: User = None,
) -> None:
    """List the open tasks by due date."""
    from habilis.cli.tasks.tasks import list_tasks

    raise typer.Exit(list_tasks(memory, user, all=all, as_json=as_json))


@app.command()
def add(
    title: Annotated[str, typer.Argument(metavar='TITLE', help='What to do.', show_default=False, callback=not_empty)],
    due: Due = None,
    notes: Notes = None,
    after: After = None,
    as_json: AsJson = False,
    memory: Where = None,
    user: User = None,
) -> None:
    """Add a task, and print its number."""
    from habilis.cli.tasks.tasks import Changes, add_task

    wanted = Changes(title=title, due=due, notes=notes, after=after)
    raise typer.Exit(add_task(wanted, memory, user, as_json=as_json))


@app.command()
def update(
    number: Number,
    state: Annotated[State | None, typer.Option('--state', help='New state.')] = None,
    title: Annotated[
        str | None, typer.Option('--title', metavar='TITLE', help='New title.', callback=not_empty)
    ] = None,
    due: Due = None,
    notes: Notes = None,
    after: After = None,
    as_json: AsJson = False,
    memory: Where = None,
    user: User = None,
) -> None:
    """Change a task; what is not given stays. An empty --due removes the date."""
    from habilis.cli.tasks.tasks import Changes, update_tasks

    wanted = Changes(state=state, title=title, due=due, notes=notes, after=after)
    raise typer.Exit(update_tasks([number], wanted, memory, user, as_json=as_json))


@app.command()
def done(numbers: Numbers, as_json: AsJson = False, memory: Where = None, user: User = None) -> None:
    """Complete tasks."""
    from habilis.cli.tasks.tasks import Changes, update_tasks

    raise typer.Exit(update_tasks(numbers, Changes(state='completed'), memory, user, as_json=as_json))


@app.command()
def rm(numbers: Numbers, yes: Yes = False, as_json: AsJson = False, memory: Where = None, user: User = None) -> None:
    """Delete tasks for good."""
    from habilis.cli.tasks.tasks import remove_tasks

    raise typer.Exit(remove_tasks(numbers, memory, user, yes=yes, as_json=as_json))
