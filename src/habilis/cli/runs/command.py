"""Subcommands of `habilis runs` and their options. The module named after a subcommand does its work.

Those modules are imported when a subcommand runs, so that `--help` is fast.
"""

import shlex
from dataclasses import replace
from typing import Annotated

import typer

from habilis.cli.options import RARE, AsJson, Journal, LibraryFolder, Quiet, Yes, command_group, printable
from habilis.cli.runs.options import (
    RUN_HELP,
    App,
    ChangeAction,
    ExportFormat,
    ForkEdit,
    ForkRecord,
    ForkStep,
    ForkWorkspace,
    FurtherSteps,
    ModelName,
    NoResume,
    QuestionPath,
    RunId,
    RunState,
    User,
    Workspace,
)

EPILOG = """\b
Runs of `habilis run`, of agents and of flows are recorded. After a limit, a question, Ctrl-C or a crash, `resume`
continues from the last recorded step; recorded steps are not executed again.

\b
Examples:
  habilis runs list --status interrupted
  habilis runs show run-1f2e3d4c5b6a --step 2
  habilis runs resume run-1f2e3d4c5b6a --max-steps 10
  habilis runs approve run-1f2e3d4c5b6a
  habilis runs fork run-1f2e3d4c5b6a --at 3        repeat from step 3 as a new run
  habilis runs keep run-1f2e3d4c5b6a run-6a5b4c3d  make a tool of two runs that did the same
  habilis runs export --all --format jsonl -o rows.jsonl
  habilis runs export run-1f2e3d4c5b6a --html run.html
  habilis runs prune --older-than 30d --dry-run

\b
Exit codes: 0 success, 1 error (or the runs differ), 2 usage error; of a resumed run: 3 limit reached, 4 question or
approval pending, 130 Ctrl-C.
"""

app = command_group('List, inspect, resume, fork and export recorded runs.', EPILOG)


# Inspect --------------------------------------------------------------------------------------------------------------


@app.command('list')
def list_(
    status: Annotated[RunState | None, typer.Option('--status', help='Only runs with this status.')] = None,
    session: Annotated[str | None, typer.Option('--session', metavar='ID', help='Only runs of this session.')] = None,
    limit: Annotated[int, typer.Option('--limit', metavar='N', help='Maximum number of runs.', min=1)] = 20,
    as_json: AsJson = False,
    journal: Journal = None,
    user: User = None,
) -> None:
    """List runs, newest first."""
    from habilis.cli.runs.list import RunFilter, list_runs

    wanted = RunFilter(state=status.value if status else None, session=session, limit=limit)
    raise typer.Exit(list_runs(journal, user, wanted, as_json=as_json))


@app.command()
def show(
    run: RunId,
    step: Annotated[
        str | None, typer.Option('--step', metavar='N', help='Show only this step, in full: its number or path.')
    ] = None,
    as_json: AsJson = False,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Show the task, the steps and the pending questions of a run. Works on running and damaged runs too."""
    from habilis.cli.runs.show import show_run

    raise typer.Exit(show_run(journal, user, run, step, as_json=as_json))


@app.command(rich_help_panel=RARE)
def events(
    run: RunId,
    follow: Annotated[bool, typer.Option('--follow', '-f', help='Wait for new records until the run ends.')] = False,
    as_json: AsJson = False,
    journal: Journal = None,
    user: User = None,
) -> None:
    """List the records of a run. Each line has number, time, kind, path and the start of the value."""
    from habilis.cli.runs.events import show_events

    raise typer.Exit(show_events(journal, user, run, follow=follow, as_json=as_json))


@app.command(rich_help_panel=RARE)
def calls(run: RunId, as_json: AsJson = False, journal: Journal = None, user: User = None) -> None:
    """List the tool calls of a run. Each line has time, tool, arguments, decision and result."""
    from habilis.cli.runs.calls import show_calls

    raise typer.Exit(show_calls(journal, user, run, as_json=as_json))


@app.command()
def diff(
    a: RunId,
    b: Annotated[
        str | None,
        typer.Argument(metavar='RUN', help='Another run to compare with, named likewise.', show_default=False),
    ] = None,
    at: Annotated[
        str | None, typer.Option('--at', metavar='STEP', help='Only what this step changed in files.')
    ] = None,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Show what a run changed in the files of its workspace (see `files`), or compare two runs step by step.

    The exit code is 0 if two runs are equal and 1 if they differ.
    """
    if b is not None and at is not None:
        msg = 'is for the files of one run; leave it out to compare two'
        raise typer.BadParameter(msg, param_hint='--at')
    from habilis.cli.runs.diff import diff_runs
    from habilis.cli.runs.files import diff_files

    if b is None:
        raise typer.Exit(diff_files(journal, user, a, at))
    raise typer.Exit(diff_runs(a, b, journal=journal, user=user))


@app.command(rich_help_panel=RARE)
def files(run: RunId, as_json: AsJson = False, journal: Journal = None, user: User = None) -> None:
    """List the checkpoints of a run made with checkpoints: after which steps which files had changed."""
    from habilis.cli.runs.files import list_checkpoints

    raise typer.Exit(list_checkpoints(journal, user, run, as_json=as_json))


@app.command(rich_help_panel=RARE)
def path(journal: Journal = None, user: User = None) -> None:
    """Print the location of the journal."""
    from habilis.cli.runs.list import print_path

    raise typer.Exit(print_path(journal, user))


# Continue -------------------------------------------------------------------------------------------------------------


@app.command()
def resume(
    run: RunId,
    answer: Annotated[
        str | None, typer.Option('--answer', metavar='TEXT', help="Answer to the agent's question, or a new message.")
    ] = None,
    max_steps: FurtherSteps = None,
    model: ModelName = None,
    workspace: Workspace = None,
    on_change: ChangeAction = 'fail',
    program: App = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Resume a run from its last recorded step. Recorded steps are not executed again."""
    from habilis.cli.runs.resume import ResumeOptions, resume_run

    options = ResumeOptions(
        run=run,
        journal=journal,
        user=user,
        answer=answer,
        max_steps=max_steps,
        model=model,
        workspace=workspace,
        on_change=on_change,
        app=program,
        as_json=as_json,
        quiet=quiet,
    )
    raise typer.Exit(resume_run(options))


@app.command()
def approve(
    run: RunId,
    question: QuestionPath = None,
    yes: Yes = False,
    no_resume: NoResume = False,
    program: App = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Approve the pending tool call of a run, and resume the run. At a terminal, it is shown first."""
    from habilis.cli.runs.answer import answer_question
    from habilis.cli.runs.resume import ResumeOptions

    options = ResumeOptions(run=run, journal=journal, user=user, app=program, as_json=as_json, quiet=quiet)
    raise typer.Exit(
        answer_question(
            options, True, command='approve', path=question, resume=not no_resume, confirm=not (yes or as_json)
        )
    )


@app.command()
def deny(
    run: RunId,
    question: QuestionPath = None,
    reason: Annotated[
        str | None, typer.Option('--reason', metavar='TEXT', help='Reason, which the code sees in its error.')
    ] = None,
    no_resume: NoResume = False,
    program: App = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Deny the pending tool call of a run, and resume the run. The call raises an error in its code."""
    from habilis.cli.runs.answer import answer_question, denial
    from habilis.cli.runs.resume import ResumeOptions

    options = ResumeOptions(run=run, journal=journal, user=user, app=program, as_json=as_json, quiet=quiet)
    raise typer.Exit(answer_question(options, denial(reason), command='deny', path=question, resume=not no_resume))


@app.command()
def answer(
    run: RunId,
    value: Annotated[
        str,
        typer.Argument(
            metavar='ANSWER',
            help="""JSON, such as 42, '"blue"' or '{"again": true}'; for an approval: yes, 'cell 20', always,
            'always src/', session, or 'no, because …'.""",
        ),
    ],
    question: QuestionPath = None,
    no_resume: NoResume = False,
    program: App = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Answer the pending question of a run, and resume the run. `habilis runs show RUN` shows the question."""
    from habilis.cli.runs.answer import answer_question, parse_answer
    from habilis.cli.runs.resume import ResumeOptions

    options = ResumeOptions(run=run, journal=journal, user=user, app=program, as_json=as_json, quiet=quiet)
    given = parse_answer(value)
    raise typer.Exit(answer_question(options, given, command='answer', path=question, resume=not no_resume))


@app.command()
def fork(
    run: RunId,
    at: ForkStep = None,
    before: ForkRecord = None,
    edit: ForkEdit = None,
    workspace: ForkWorkspace = None,
    no_resume: NoResume = False,
    program: App = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Copy a run up to a step, perhaps with a change, and resume the copy. Prints the id of the copy."""
    if before is not None and (at is not None or edit is not None):
        msg = 'give either --before N, or --at STEP and perhaps --edit TEXT'
        raise typer.BadParameter(msg, param_hint='--before')
    from habilis.cli.runs.fork import find_fork_point, fork_run
    from habilis.cli.runs.resume import ResumeOptions, check_resumable, read_recorded_run, resume_run

    known, point = find_fork_point(run, at, before, journal=journal, user=user)
    options = ResumeOptions(
        run=known, journal=journal, user=user, workspace=workspace, app=program, as_json=as_json, quiet=quiet
    )
    if not no_resume:  # before anything is copied
        given = f' --before {before}' if before is not None else f' --at {shlex.quote(at)}' if at is not None else ''
        given += '' if edit is None else f' --edit {shlex.quote(edit)}'
        check_resumable(options, read_recorded_run(options), 'fork', given)
    copy = fork_run(known, point, edit, journal=journal, user=user)
    typer.echo(copy, err=not no_resume)
    if not no_resume:
        raise typer.Exit(resume_run(replace(options, run=copy)))


@app.command(rich_help_panel=RARE)
def restore(
    run: RunId,
    at: Annotated[
        str, typer.Option('--at', metavar='STEP', help='Number of a step; 0 for the start. Or the ID of a checkpoint.')
    ],
    journal: Journal = None,
    user: User = None,
) -> None:
    """Bring the files of the workspace back as they were after a step. What is there now is stored first."""
    from habilis.cli.runs.files import restore_files

    raise typer.Exit(restore_files(journal, user, run, at))


# Export, score, delete ------------------------------------------------------------------------------------------------


@app.command(rich_help_panel=RARE)
def export(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar='RUN', help=f'{RUN_HELP} Several with --format jsonl.')
    ] = None,
    output: Annotated[
        str, typer.Option('--output', '-o', metavar='FILE', help='Output file (default: stdout).', show_default=False)
    ] = '-',
    form: Annotated[
        ExportFormat,
        typer.Option('--format', help='run: one whole run, for `import`. jsonl: one row per step, for training.'),
    ] = 'run',
    everything: Annotated[bool, typer.Option('--all', help='Export all runs, with --format jsonl.')] = False,
    html: Annotated[
        str | None, typer.Option('--html', metavar='FILE', help='Write one page to share, without secrets, instead.')
    ] = None,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Export a run to a file, as a page to share, or runs as training rows; the latter two without secrets."""
    chosen = list(dict.fromkeys(runs or ()))
    if everything == bool(chosen):
        msg = 'give either run ids or --all'
        raise typer.BadParameter(msg, param_hint='RUN')
    if form == 'run' and (everything or len(chosen) != 1):
        msg = 'this format holds one run; use --format jsonl for several'
        raise typer.BadParameter(msg, param_hint='--format')
    if html is not None and (form != 'run' or output != '-'):
        msg = 'it names the file and the format: leave out --output and --format'
        raise typer.BadParameter(msg, param_hint='--html')
    from habilis.cli.runs.exchange import export_page, export_rows, export_whole_run

    if html is not None:
        raise typer.Exit(export_page(journal, user, chosen[0], html))
    if form == 'run':
        raise typer.Exit(export_whole_run(journal, user, chosen[0], output))
    raise typer.Exit(export_rows(journal, user, chosen, output))


@app.command('import', rich_help_panel=RARE)
def import_(
    file: Annotated[str, typer.Argument(metavar='FILE|-', help='File written by `export`, or - to read stdin.')],
    run_id: Annotated[
        str | None,
        typer.Option('--run-id', metavar='ID', help='New id for the run (default: its own).', callback=printable),
    ] = None,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Import an exported run, and print its id."""
    from habilis.cli.runs.exchange import import_run

    raise typer.Exit(import_run(file, run_id, journal=journal, user=user))


@app.command(rich_help_panel=RARE)
def score(
    run: RunId,
    value: Annotated[float, typer.Argument(metavar='SCORE', help='A number, such as 0.5.')],
    journal: Journal = None,
    user: User = None,
) -> None:
    """Record a score for a run. It is the reward of the last row in `export --format jsonl`."""
    from habilis.cli.runs.score import score_run

    raise typer.Exit(score_run(journal, user, run, value))


@app.command()
def keep(
    runs: Annotated[list[str], typer.Argument(metavar='RUN', help='The run, and others that did the same.')],
    name: Annotated[str, typer.Option('--name', metavar='NAME', help='Name (default: from the task).')] = '',
    note: Annotated[
        str, typer.Option('--note', metavar='REASON', help='Why tests that miss wrong variants are enough.')
    ] = '',
    as_json: AsJson = False,
    library: LibraryFolder = None,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Make a tool of finished runs: their cells, with parameters where literals vary. Their answers are its tests."""
    from habilis.cli.runs.keep import keep_run

    raise typer.Exit(keep_run(journal, user, runs, name=name, note=note, folder=library, as_json=as_json))


@app.command()
def rm(
    runs: Annotated[list[str], typer.Argument(metavar='RUN', help=RUN_HELP)],
    yes: Yes = False,
    as_json: AsJson = False,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Delete runs permanently."""
    from habilis.cli.runs.delete import delete_runs

    raise typer.Exit(delete_runs(journal, user, runs, yes=yes, as_json=as_json))


@app.command(rich_help_panel=RARE)
def prune(
    older_than: Annotated[
        str, typer.Option('--older-than', metavar='AGE', help='Minimum time since the last record: 30d, 12h or 90m.')
    ],
    status: Annotated[
        list[RunState] | None,
        typer.Option(
            '--status', help='Only runs with this status (default: done, stopped and failed). Can be repeated.'
        ),
    ] = None,
    keep: Annotated[int, typer.Option('--keep', metavar='N', help='Number of newest runs to keep.', min=0)] = 0,
    dry_run: Annotated[bool, typer.Option('--dry-run', help='Only list the runs that would be deleted.')] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Delete old runs. Running and waiting runs are kept unless --status names them."""
    from habilis.cli.runs.delete import PruneOptions, parse_age, prune_runs

    options = PruneOptions(
        seconds=parse_age(older_than), states=tuple(state.value for state in status or ()), keep=keep
    )
    raise typer.Exit(prune_runs(journal, user, options, dry_run=dry_run, yes=yes, as_json=as_json))
