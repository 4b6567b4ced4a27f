"""Commands that change what is kept: `fork`, `score`, `delete`, `prune`."""

import re
from typing import Annotated

import typer

from habilis.cli.runs.options import App, AsJson, NoResume, Quiet, Run, Shown, User, Where, Yes, app

_UNITS = {'d': 86400.0, 'h': 3600.0, 'm': 60.0}
_LONG_AGO = 1e10


def _seconds(text: str) -> float:
    found = re.fullmatch(r'(\d{1,9}(?:\.\d{1,9})?)([dhm])', text.strip().lower())
    if found is None:
        msg = f'{text!r} is no time: expected a number of days, hours or minutes, such as 30d, 12h or 90m'
        raise typer.BadParameter(msg)
    return min(float(found[1]) * _UNITS[found[2]], _LONG_AGO)


@app.command()
def fork(
    run: Run,
    at: Annotated[
        str | None,
        typer.Option('--at', metavar='STEP', help='Number of a step, as `show` counts; for a flow its path.'),
    ] = None,
    before: Annotated[
        int | None,
        typer.Option('--before', metavar='N', help='Number of a record, as `events` counts; before a damaged one.'),
    ] = None,
    no_resume: NoResume = False,
    program: App = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """Make a new run of what was done before a step, print its name, and go on with it from there."""
    if (at is None) == (before is None):
        msg = 'say where with --at STEP or with --before N'
        raise typer.BadParameter(msg, param_hint='--at')
    from habilis.cli.runs.fork import fork_run
    from habilis.cli.runs.resume import Wish, resume_run

    wish = Wish(run=fork_run(run, at, before, where=journal, user=user), where=journal, user=user, app=program)
    typer.echo(wish.run, err=not no_resume)
    if not no_resume:
        from dataclasses import replace

        raise typer.Exit(resume_run(replace(wish, as_json=as_json, quiet=quiet)))


@app.command()
def score(
    run: Run,
    value: Annotated[float, typer.Argument(metavar='X', help='How good it was, such as 0.5.')],
    journal: Where = None,
    user: User = None,
) -> None:
    """Note how good a run was: the reward of its last row in `export --format jsonl`."""
    from habilis.cli.runs.fork import note_score

    raise typer.Exit(note_score(run, value, where=journal, user=user))


@app.command()
def delete(
    runs: Annotated[list[str], typer.Argument(metavar='RUN…', help='As `habilis runs list` shows them.')],
    yes: Yes = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """Forget runs, for good."""
    from habilis.cli.runs.delete import delete_runs

    raise typer.Exit(delete_runs(list(dict.fromkeys(runs)), yes=yes, where=journal, user=user))


@app.command()
def prune(
    older_than: Annotated[
        str, typer.Option('--older-than', metavar='TIME', help='30d, 12h or 90m since anything happened.')
    ],
    status: Annotated[
        list[Shown] | None,
        typer.Option('--status', help='Only those in this state; otherwise done, stopped and failed.'),
    ] = None,
    keep: Annotated[int, typer.Option('--keep', metavar='N', help='The newest that stay in any case.', min=0)] = 0,
    dry_run: Annotated[bool, typer.Option('--dry-run', help='Only say what would be deleted.')] = False,
    yes: Yes = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """Forget old runs. Those that go on or wait for a person stay, unless --status names them."""
    seconds = _seconds(older_than)
    from habilis.cli.runs.delete import Old, prune_runs

    old = Old(seconds=seconds, states=tuple(state.value for state in status or ()), keep=keep)
    raise typer.Exit(prune_runs(old, dry_run=dry_run, yes=yes, where=journal, user=user))
