"""Commands that look: `list`, `show`, `events`, `calls`, `path`."""

from typing import Annotated

import typer

from habilis.cli.runs.options import AsJson, Run, Shown, User, Where, app


@app.command('list')
def list_(
    status: Annotated[Shown | None, typer.Option('--status', help='Only those in this state.')] = None,
    session: Annotated[str | None, typer.Option('--session', metavar='ID', help='Only those of a session.')] = None,
    limit: Annotated[int, typer.Option('--limit', metavar='N', help='How many; the newest.', min=1)] = 20,
    as_json: AsJson = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """The runs there are, the newest first."""
    from habilis.cli.runs.journal import at_desk
    from habilis.cli.runs.list import Wanted, show_list

    wanted = Wanted(state=status.value if status else None, session=session, limit=limit, as_json=as_json)
    raise typer.Exit(at_desk(journal, user, lambda desk: show_list(desk, wanted)))


@app.command()
def show(
    run: Run,
    step: Annotated[
        str | None, typer.Option('--step', metavar='N', help='Only this step, whole: its number, or its path.')
    ] = None,
    as_json: AsJson = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """What was asked, what was done step by step, and what people are asked. Works on damaged and running runs too."""
    from habilis.cli.runs.journal import at_desk
    from habilis.cli.runs.show import show_run

    raise typer.Exit(at_desk(journal, user, lambda desk: show_run(desk, run, step, as_json=as_json)))


@app.command()
def events(
    run: Run,
    follow: Annotated[bool, typer.Option('--follow', '-f', help='Wait for more, until the run ends.')] = False,
    as_json: AsJson = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """The records of a run in their order, one a line: number, time, kind, path, the start of the value."""
    from habilis.cli.runs.journal import at_desk
    from habilis.cli.runs.list import show_events

    raise typer.Exit(at_desk(journal, user, lambda desk: show_events(desk, run, follow=follow, as_json=as_json)))


@app.command()
def calls(run: Run, as_json: AsJson = False, journal: Where = None, user: User = None) -> None:
    """Every tool call of a run: when, which tool, with what, who allowed it, what came of it."""
    from habilis.cli.runs.journal import at_desk
    from habilis.cli.runs.list import show_calls

    raise typer.Exit(at_desk(journal, user, lambda desk: show_calls(desk, run, as_json=as_json)))


@app.command()
def path(journal: Where = None, user: User = None) -> None:
    """Print where the journal is."""
    from habilis.cli.runs.journal import at_desk
    from habilis.cli.runs.list import show_place

    raise typer.Exit(at_desk(journal, user, show_place, makes=True))
