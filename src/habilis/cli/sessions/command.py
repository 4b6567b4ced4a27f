"""Subcommands of `habilis sessions` and their options. `sessions.py` does the work, and is imported when one runs."""

from typing import Annotated

import typer

from habilis.cli.memory.options import Limit, User, Where
from habilis.cli.options import AsJson, Journal, Yes, command_group

EPILOG = """\b
A session is a conversation: its turns are in the memory, its runs in the journal (habilis runs list --session ID).

\b
Examples:
  habilis sessions list
  habilis sessions show last --limit 20
  habilis sessions rm monday
"""

app = command_group('List, show and delete conversations.', EPILOG)

SessionId = Annotated[
    str, typer.Argument(metavar='SESSION', help='Id of the session, or last for the newest.', show_default=False)
]


@app.command('list')
def list_(
    limit: Limit = 20, as_json: AsJson = False, memory: Where = None, journal: Journal = None, user: User = None
) -> None:
    """List the conversations, newest first."""
    from habilis.cli.sessions.sessions import Places, list_sessions

    raise typer.Exit(list_sessions(Places(memory=memory, journal=journal, user=user), limit=limit, as_json=as_json))


@app.command()
def show(
    session: SessionId,
    limit: Limit = 50,
    as_json: AsJson = False,
    memory: Where = None,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Show the last turns of a conversation, and its runs."""
    from habilis.cli.sessions.sessions import Places, show_session

    places = Places(memory=memory, journal=journal, user=user)
    raise typer.Exit(show_session(session, places, limit=limit, as_json=as_json))


@app.command()
def rm(
    session: SessionId,
    yes: Yes = False,
    as_json: AsJson = False,
    memory: Where = None,
    journal: Journal = None,
    user: User = None,
) -> None:
    """Delete a conversation for good: its turns, the facts drawn from them, and its runs."""
    from habilis.cli.sessions.sessions import Places, remove_session

    places = Places(memory=memory, journal=journal, user=user)
    raise typer.Exit(remove_session(session, places, yes=yes, as_json=as_json))
