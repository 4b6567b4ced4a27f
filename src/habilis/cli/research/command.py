"""Options of `habilis research`. Other rooms are imported when the command runs, so that `--help` is fast."""

from typing import Annotated, Literal

import typer

from habilis.cli.options import Download, Journal, ModelName, Quiet, User, none_empty, not_empty

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

EPILOG = """\b
Every sentence of the report cites a passage of a page that was read; addresses come from these pages alone.
Ctrl-C stops the research and gives the report so far.

\b
Examples:
  habilis research "How do heat pumps compare with gas boilers in old houses?" --out report.html
  habilis research "What do our contracts say about notice periods?" --source contracts --no-web --effort low
  habilis research "Which e-bikes weigh less than 15 kg?" --format table --out bikes.md
  habilis research --show last                     the plan and the sources
  habilis research --resume last --add "What about maintenance?" --drop 2

\b
Exit codes: 0 success, 1 error, 2 usage error, 3 paused at the cost limit, 130 Ctrl-C.
"""


@app.command(epilog=EPILOG)
def research(
    goal: Annotated[
        str | None,
        typer.Argument(metavar='GOAL', help='What to find out.', show_default=False, callback=not_empty),
    ] = None,
    effort: Annotated[
        Literal['low', 'medium', 'high'], typer.Option('--effort', help='Bounds on rounds, pages, calls and tokens.')
    ] = 'medium',
    form: Annotated[
        str,
        typer.Option(
            '--format', metavar='FORM', help='report, blog, brief, table, or a Markdown file that describes the form.'
        ),
    ] = 'report',
    source: Annotated[
        list[str] | None,
        typer.Option(
            '--source',
            metavar='PATH',
            help='Folder or file to read: text, Markdown, HTML, PDF; repeat for more.',
            callback=none_empty,
        ),
    ] = None,
    web: Annotated[bool, typer.Option('--web/--no-web', help='Whether to search the web.')] = True,
    out: Annotated[
        str | None, typer.Option('--out', metavar='FILE', help='Report as .md, .html or .pdf (default: to stdout).')
    ] = None,
    model: ModelName = None,
    max_cost: Annotated[
        float | None,
        typer.Option('--max-cost', metavar='USD', help='Pause when this was spent, in US dollars (default: none).'),
    ] = None,
    resume: Annotated[str | None, typer.Option('--resume', metavar='RUN', help='Go on with this research.')] = None,
    show: Annotated[
        str | None, typer.Option('--show', metavar='RUN', help='Show the plan and the sources of this research.')
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option('--add', metavar='TEXT', help='With --resume: another sub-goal.', callback=none_empty),
    ] = None,
    drop: Annotated[
        list[int] | None, typer.Option('--drop', metavar='N', help='With --resume: a sub-goal that is not needed.')
    ] = None,
    journal: Journal = None,
    user: User = None,
    quiet: Quiet = False,
    yes: Download = False,
) -> None:
    """Research a goal on the web and in folders, and write a report whose every sentence has its source."""
    if sum(one is not None for one in (goal, resume, show)) != 1:
        msg = 'give a goal, or --resume RUN, or --show RUN'
        raise typer.BadParameter(msg, param_hint='GOAL')
    if (add or drop) and resume is None:
        msg = 'the plan of a recorded research is changed: name it with --resume RUN'
        raise typer.BadParameter(msg, param_hint='--add' if add else '--drop')
    from habilis.cli.research.execution import ResearchRequest, run_research
    from habilis.cli.research.plan_view import show_plan

    if show is not None:
        raise typer.Exit(show_plan(journal, user, show))
    request = ResearchRequest(
        goal=goal or '',
        effort=effort,
        form=form,
        sources=tuple(source or ()),
        web=web,
        out=out,
        model=model,
        max_cost=max_cost,
        run=resume or '',
        add=tuple(add or ()),
        drop=tuple(drop or ()),
        journal=journal,
        user=user,
        quiet=quiet,
        download=yes,
    )
    raise typer.Exit(run_research(request))
