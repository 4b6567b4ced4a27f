"""`habilis serve token`: the people that the server lets in."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from habilis.cli import options
from habilis.cli.printing import Page
from habilis.cli.streams import say

if TYPE_CHECKING:
    from habilis.server.users import Users

app = options.command_group('Let people in, each with a token of their own.')
Name = Annotated[str, typer.Argument(metavar='NAME', help='Name of the user, as in --user.')]


def users_file() -> 'Users':
    """The users of this machine's server."""
    from habilis.core.folders import data_folder
    from habilis.server.users import Users

    return Users(data_folder() / 'server_users.json')


@app.command()
def add(name: Name) -> None:
    """Let a user in, and print the token, which is shown only this once. A second token replaces the first."""
    print(users_file().add(_checked(name)))
    say(f'this is the token of {name}; it is not shown again')


@app.command('list')
def list_users(as_json: options.AsJson = False) -> None:
    """List the users that have a token."""
    names = users_file().names()
    if as_json:
        print(json.dumps(names))
        return
    for name in names:
        Page().text(name)
    if not names:
        say('nobody has a token: the server is for you alone, on this machine')


@app.command()
def revoke(name: Name) -> None:
    """Let a user in no longer. What they have done stays."""
    if not users_file().revoke(name):
        say(f'{name} has no token; `habilis serve token list` lists those who have')
        raise typer.Exit(2)


def _checked(name: str) -> str:
    if not name.strip() or not name.isprintable():
        msg = 'a name needs a letter, and no control characters'
        raise typer.BadParameter(msg)
    return name
