"""Subcommands of `habilis memory` and their options. The other modules do the work.

Those modules are imported when a subcommand runs, so that `--help` is fast.
"""

from typing import Annotated, Literal

import typer

from habilis.cli.memory.options import EmbedderName, Limit, User, Where
from habilis.cli.options import AsJson, Yes, command_group, not_empty

EPILOG = """\b
The memory has the turns of your conversations, verbatim, and a few facts. It is a file of yours, in the data folder
unless the settings say otherwise.

\b
Examples:
  habilis memory add "Prefers short answers" --kind preference
  habilis memory search "what did I say about the boat?"
  habilis memory search rent --since 2030-01-01 --role user
  habilis memory why "Plan the boat trip"        what a task would get from the memory
  habilis memory forget --query "old password"
  habilis memory forget --before 2029-12-31 --yes
  habilis memory export memory.jsonl

\b
Exit codes: 0 success, 1 error (or nothing found), 2 usage error, 130 Ctrl-C.
"""

app = command_group('List, search, add, forget, export and import what is remembered.', EPILOG)


Kind = Literal['fact', 'preference', 'instruction', 'decision']
History = Annotated[bool, typer.Option('--history', help='Also facts that newer ones have replaced.')]
QueryText = Annotated[str, typer.Argument(metavar='QUERY', help='Words or a question.', show_default=False)]


@app.command('list')
def list_(history: History = False, as_json: AsJson = False, memory: Where = None, user: User = None) -> None:
    """List the facts."""
    from habilis.cli.memory.entries import list_facts

    raise typer.Exit(list_facts(memory, user, history=history, as_json=as_json))


@app.command()
def search(
    query: QueryText,
    limit: Limit = 5,
    since: Annotated[str | None, typer.Option('--since', metavar='DATE', help='Nothing older.')] = None,
    until: Annotated[str | None, typer.Option('--until', metavar='DATE', help='Only what is older.')] = None,
    role: Annotated[str | None, typer.Option('--role', metavar='NAME', help='Only what NAME has said.')] = None,
    session: Annotated[str | None, typer.Option('--session', metavar='ID', help='Only this conversation.')] = None,
    history: History = False,
    embedder: EmbedderName = None,
    as_json: AsJson = False,
    memory: Where = None,
    user: User = None,
) -> None:
    """Find facts and turns, best first, each turn with those around it."""
    from habilis.cli.memory import entries
    from habilis.cli.memory.opening import seconds_of

    wanted = entries.Query(
        text=query,
        limit=limit,
        since=seconds_of(since, option='--since'),
        until=seconds_of(until, option='--until'),
        role=role,
        session=session,
        history=history,
    )
    raise typer.Exit(entries.search(wanted, memory, user, embedder, as_json=as_json))


@app.command()
def why(
    task: Annotated[str, typer.Argument(metavar='TASK', help='A task or message.', show_default=False)],
    budget: Annotated[int, typer.Option('--budget', metavar='TOKENS', help='Maximum size.', min=1)] = 800,
    embedder: EmbedderName = None,
    as_json: AsJson = False,
    memory: Where = None,
    user: User = None,
) -> None:
    """Show what a task would get from the memory, and why."""
    from habilis.cli.memory import entries

    raise typer.Exit(entries.why(task, budget, memory, user, embedder, as_json=as_json))


@app.command()
def embed(embedder: EmbedderName = None, as_json: AsJson = False, memory: Where = None, user: User = None) -> None:
    """Embed all entries now, for search by meaning. Else they are embedded in the background, while you chat."""
    from habilis.cli.memory import entries

    raise typer.Exit(entries.embed(memory, user, embedder, as_json=as_json))


@app.command()
def add(
    text: Annotated[
        str, typer.Argument(metavar='TEXT', help='A short statement.', show_default=False, callback=not_empty)
    ],
    kind: Annotated[Kind, typer.Option('--kind', help='What it is about.')] = 'fact',
    replaces: Annotated[
        str | None, typer.Option('--replaces', metavar='ID', help='Fact that is no longer true.')
    ] = None,
    as_json: AsJson = False,
    memory: Where = None,
    user: User = None,
) -> None:
    """Add a fact, and print its id. One that says the same is not added again."""
    from habilis.cli.memory.entries import add_fact

    raise typer.Exit(add_fact(text, kind, replaces, memory, user, as_json=as_json))


@app.command()
def forget(
    ids: Annotated[list[str] | None, typer.Argument(metavar='ID', help='Facts or turns.', show_default=False)] = None,
    before: Annotated[str | None, typer.Option('--before', metavar='DATE', help='Everything older.')] = None,
    query: Annotated[
        str | None, typer.Option('--query', metavar='WORDS', help='Everything that has all of these words.')
    ] = None,
    runs: Annotated[
        bool, typer.Option('--runs', help='Also the recorded runs of the conversations that the turns are from.')
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    memory: Where = None,
    user: User = None,
) -> None:
    """Delete facts and turns for good, also from the bytes of the file. The journal of runs keeps what was said in
    them, unless --runs is given."""
    if [bool(ids), before is not None, query is not None].count(True) != 1:
        msg = 'give ids, --before DATE or --query WORDS, and only one of them'
        raise typer.BadParameter(msg, param_hint='ID')
    from habilis.cli.memory import entries
    from habilis.cli.memory.opening import seconds_of
    from habilis.memory.forgetting import Selection

    until = seconds_of(before, option='--before')
    chosen = Selection(ids=ids or (), before=until, query=not_empty(query))
    raise typer.Exit(entries.forget(chosen, memory, user, runs=runs, yes=yes, as_json=as_json))


@app.command()
def export(
    file: Annotated[str, typer.Argument(metavar='FILE', help='File to write, or - for stdout.')] = '-',
    memory: Where = None,
    user: User = None,
) -> None:
    """Write all turns, facts and tasks as JSON lines."""
    from habilis.cli.memory.exchange import export_memory

    raise typer.Exit(export_memory(file, memory, user))


@app.command('import')
def import_(
    file: Annotated[str, typer.Argument(metavar='FILE', help='File of `export`, or - for stdin.', show_default=False)],
    as_json: AsJson = False,
    memory: Where = None,
    user: User = None,
) -> None:
    """Add what an export has and the memory has not: all of it or nothing."""
    from habilis.cli.memory.exchange import import_memory

    raise typer.Exit(import_memory(file, memory, user, as_json=as_json))
