"""Commands that take runs elsewhere, or put two side by side: `export`, `import`, `diff`."""

from enum import Enum
from typing import Annotated

import typer

from habilis.cli.options import printable
from habilis.cli.runs.options import Run, User, Where, app


class Format(Enum):
    """What a run is written as."""

    run = 'run'
    jsonl = 'jsonl'


@app.command()
def export(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar='RUN…', help='One run; several with --format jsonl.')
    ] = None,
    output: Annotated[str | None, typer.Option('--output', '-o', metavar='FILE', help='Instead of stdout.')] = None,
    form: Annotated[
        Format, typer.Option('--format', help='run: all of it, for `import`. jsonl: a row a step, for training.')
    ] = Format.run,
    everything: Annotated[bool, typer.Option('--all', help='All runs, with --format jsonl.')] = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """Write a run to a file: whole, or as rows fit for training, without secrets."""
    chosen = list(dict.fromkeys(runs or ()))
    if everything == bool(chosen):
        msg = 'name the runs to export, or say --all'
        raise typer.BadParameter(msg, param_hint='RUN…')
    if form is Format.run and (everything or len(chosen) != 1):
        msg = 'a file holds one run; --format jsonl takes several'
        raise typer.BadParameter(msg, param_hint='--format')
    from habilis.cli.runs.export import export_rows, export_whole

    if form is Format.run:
        raise typer.Exit(export_whole(chosen[0], output, where=journal, user=user))
    raise typer.Exit(export_rows(chosen, output, where=journal, user=user))


@app.command('import')
def import_(
    file: Annotated[str, typer.Argument(metavar='FILE|-', help='As `export` has written it.')],
    run_id: Annotated[
        str | None, typer.Option('--run-id', metavar='ID', help='Another name for the run.', callback=printable)
    ] = None,
    journal: Where = None,
    user: User = None,
) -> None:
    """Have a run here that was exported elsewhere, and print its name."""
    from habilis.cli.runs.export import import_file

    raise typer.Exit(import_file(file, run_id, where=journal, user=user))


@app.command()
def diff(
    a: Run,
    b: Annotated[str, typer.Argument(metavar='RUN', help='Another one.', show_default=False)],
    journal: Where = None,
    user: User = None,
) -> None:
    """Where two runs differ, step by step. The exit code is 0 if they do not, and 1 if they do."""
    from habilis.cli.runs.diff import compare_runs
    from habilis.cli.runs.journal import at_desk

    raise typer.Exit(at_desk(journal, user, lambda desk: compare_runs(desk, a, b)))
