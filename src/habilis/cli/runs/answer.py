"""Commands that go on with a run: `resume`, `approve`, `deny`, `answer`."""

from typing import Annotated

import typer

from habilis.cli.options import folder
from habilis.cli.runs.options import (
    App,
    AsJson,
    Change,
    ModelName,
    NoResume,
    PathOf,
    Quiet,
    Run,
    User,
    Where,
    app,
)


@app.command()
def resume(
    run: Run,
    answer: Annotated[
        str | None, typer.Option('--answer', metavar='TEXT', help='To its question, or something more to tell it.')
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option('--max-steps', metavar='N', help='Most further replies; as many as before.', min=1)
    ] = None,
    model: ModelName = None,
    workspace: Annotated[
        str | None,
        typer.Option(
            '--workspace',
            '-w',
            metavar='DIR',
            help='Another folder for the code; the same as before.',
            callback=folder,
        ),
    ] = None,
    on_change: Annotated[
        Change, typer.Option('--on-change', help='Where the record no longer fits: fail, continue from there, or fork.')
    ] = Change.fail,
    program: App = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """Go on with a run where it stopped. Nothing that is in its record is asked, run or called again."""
    from habilis.cli.runs.resume import Wish, resume_run

    wish = Wish(
        run=run,
        where=journal,
        user=user,
        answer=answer,
        max_steps=max_steps,
        model=model,
        workspace=workspace,
        on_change=on_change.value,
        app=program,
        as_json=as_json,
        quiet=quiet,
    )
    raise typer.Exit(resume_run(wish))


@app.command()
def approve(
    run: Run,
    path: PathOf = None,
    no_resume: NoResume = False,
    program: App = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """Allow the call that a run waits for, and go on with the run."""
    from habilis.cli.runs.resume import Wish, answer_and_resume

    wish = Wish(run=run, where=journal, user=user, app=program, as_json=as_json, quiet=quiet)
    raise typer.Exit(answer_and_resume(wish, True, path=path, resume=not no_resume))


@app.command()
def deny(
    run: Run,
    path: PathOf = None,
    reason: Annotated[str | None, typer.Option('--reason', metavar='TEXT', help='Why; the code is told, too.')] = None,
    no_resume: NoResume = False,
    program: App = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """Do not allow the call that a run waits for, and go on with the run: its code gets an error."""
    from habilis.cli.runs.resume import Wish, answer_and_resume, refusal

    wish = Wish(run=run, where=journal, user=user, app=program, as_json=as_json, quiet=quiet)
    raise typer.Exit(answer_and_resume(wish, refusal(reason), path=path, resume=not no_resume))


@app.command()
def answer(
    run: Run,
    value: Annotated[
        str, typer.Argument(metavar='JSON', help='The answer, such as 42, \'"blue"\' or \'{"again": true}\'.')
    ],
    path: PathOf = None,
    no_resume: NoResume = False,
    program: App = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    journal: Where = None,
    user: User = None,
) -> None:
    """Answer what a run asks, and go on with the run. `habilis runs show RUN` shows what it asks."""
    from habilis.cli.runs.resume import Wish, answer_and_resume, read_answer

    wish = Wish(run=run, where=journal, user=user, app=program, as_json=as_json, quiet=quiet)
    raise typer.Exit(answer_and_resume(wish, read_answer(value), path=path, resume=not no_resume))
