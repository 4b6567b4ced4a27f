"""What several commands share: their options, validators of option values, and the question before a deletion."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from habilis.cli.streams import say
from habilis.core.similar_names import similar_names

NATIVE_CHOICE = 'sandbox: {}, because the packages need native code'
"""What a command says that chose the backend by the packages."""


RARE = 'More'
"""Heading of the subcommands that are not for every day (`rich_help_panel`)."""


class HeadedGroup(TyperGroup):
    """Lists its subcommands under the headings that they name, also in plain text."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the subcommands, those without a heading first."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        headings = {name: getattr(each, 'rich_help_panel', None) or 'Commands' for name, each in found}
        width = max(len(name) for name, _ in found)
        room = formatter.width - width - 6
        for heading in sorted({*headings.values()}, key=lambda heading: heading != 'Commands'):
            rows = [(name.ljust(width), each) for name, each in found if each and headings[name] == heading]
            with formatter.section(heading):
                formatter.write_dl([(name, each.get_short_help_str(room)) for name, each in rows])


def command_group(help: str, epilog: str | None = None, *, no_args_is_help: bool = True) -> typer.Typer:
    """A command with subcommands, in plain text like all commands."""
    return typer.Typer(
        cls=HeadedGroup,
        help=help,
        epilog=epilog,
        no_args_is_help=no_args_is_help,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
    )


def confirm_deletion(question: str, *, yes: bool) -> bool:
    """Ask before something is deleted, unless `yes`. Without a terminal, `--yes` is needed."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        msg = f'{question.removesuffix("?")}: there is no terminal to confirm; use --yes'
        raise typer.BadParameter(msg, param_hint='--yes')
    if typer.confirm(question, err=True):
        return True
    say('nothing deleted')
    return False


def not_empty(value: str | None) -> str | None:
    """Refuse an empty value, which usually is an unset shell variable."""
    if value is not None and not value.strip():
        msg = 'the value is empty'
        raise typer.BadParameter(msg)
    return value


def none_empty(values: list[str] | None) -> list[str] | None:
    """The same for each value of an option that can be repeated."""
    for value in values or ():
        not_empty(value)
    return values


def folder(value: str | None) -> str | None:
    """Refuse a path that exists and is not a folder."""
    if not_empty(value) is not None and os.path.exists(str(value)) and not os.path.isdir(str(value)):
        msg = f'{value} is a file, not a folder'
        raise typer.BadParameter(msg)
    return value


def existing_folder(value: str | None, *, create: bool) -> str | None:
    """Refuse a folder that does not exist, with the nearest name, unless the sandbox may create it."""
    if value is None or create or os.path.lexists(value):
        return value
    parent, name = os.path.split(os.path.abspath(value))
    siblings = [entry.name for entry in os.scandir(parent) if entry.is_dir()] if os.path.isdir(parent) else []
    near = similar_names(name, siblings, n=1)
    advice = f'did you mean {os.path.join(os.path.dirname(value), near[0])}? ' if near else ''
    msg = f'there is no folder {value}; {advice}Use --create to make it'
    raise typer.BadParameter(msg, param_hint='--workspace')


def words(values: Sequence[str] | None) -> list[str]:
    """The values of an option that can be repeated, and takes several values with commas."""
    return [word.strip() for value in values or () for word in value.split(',') if word.strip()]


def printable(value: str | None) -> str | None:
    """Refuse unprintable characters in a run id or session id."""
    if not_empty(value) is not None and not str(value).isprintable():
        msg = f'{value!r} contains unprintable characters'
        raise typer.BadParameter(msg)
    return value


ModelName = Annotated[
    str | None,
    typer.Option(
        '--model',
        '-m',
        metavar='MODEL',
        help='Model as provider:model, or an alias (default: from the settings, else the first model found).',
        callback=not_empty,
    ),
]
Journal = Annotated[
    str | None,
    typer.Option('--journal', metavar='WHERE', help='File, folder or URL of the journal (default: from the settings).'),
]
AsJson = Annotated[bool, typer.Option('--json', help='Print JSON.')]
Yes = Annotated[bool, typer.Option('--yes', '-y', help='Do not ask for confirmation.')]
Download = Annotated[bool, typer.Option('--yes', '-y', help='Download the embedded model without asking.')]
Quiet = Annotated[bool, typer.Option('--quiet', '-q', help='Print only the answer.')]

SandboxName = Annotated[
    str | None,
    typer.Option('--sandbox', metavar='NAME', help='Sandbox backend (default: auto, what the packages need).'),
]
Workspace = Annotated[
    str | None,
    typer.Option(
        '--workspace',
        '-w',
        metavar='DIR',
        help='Folder the code may read and write (default: none).',
        callback=folder,
    ),
]
Create = Annotated[bool, typer.Option('--create', help='Create the workspace if it does not exist.')]
ModeName = Literal['ask', 'edits', 'plan', 'all']
"""The permission modes of `assistant/modes.py`, which is not imported for `--help`."""

Mode = Annotated[
    ModeName | None,
    typer.Option(
        '--mode',
        help='What may be changed in the workspace without a question (default: ask in a chat, all in a run).',
    ),
]
Checkpoints = Annotated[
    bool,
    typer.Option('--checkpoints', help='Store the files of the workspace after each step, for `habilis runs restore`.'),
]
Delegate = Annotated[bool, typer.Option('--delegate', help='Let the code start subagents for parts of the task.')]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        '--tools',
        metavar='MODULE:NAME|web',
        help='Functions of your program that the code may call; web to search and read the web. Can be repeated.',
    ),
]
Mcp = Annotated[
    list[str] | None,
    typer.Option(
        '--mcp',
        metavar='SERVER',
        help='MCP server whose tools the code may call: command line, URL, or JSON file. Can be repeated.',
        callback=none_empty,
    ),
]
Library = Annotated[
    str | None,
    typer.Option(
        '--library',
        metavar='DIR',
        help="Library of tools for the code to use and extend; 'default' for the one of `habilis tools`.",
        callback=folder,
    ),
]
Skills = Annotated[
    list[str] | None,
    typer.Option(
        '--skills',
        metavar='PATH|NAME',
        help='Agent Skills beside those that are found: a folder, a zip file, a name; off for none. Can be repeated.',
    ),
]
Packages = Annotated[list[str] | None, typer.Option('--packages', metavar='A,B', help='Packages the code may import.')]
Network = Annotated[
    list[str] | None,
    typer.Option('--network', metavar='HOST,HOST', help="Hosts the code may connect to; '*' for any public host."),
]
BaseUrl = Annotated[str | None, typer.Option('--base-url', metavar='URL', help='URL of an OpenAI-compatible server.')]
RunJournal = Annotated[
    str | None,
    typer.Option(
        '--journal', metavar='WHERE', help='Journal of the run: a file, a folder, a URL, or off to record nothing.'
    ),
]
User = Annotated[str | None, typer.Option('--user', metavar='NAME', help='Owner of the run.')]

LibraryFolder = Annotated[
    str | None,
    typer.Option(
        '--library', metavar='DIR', help='Folder of the library (default: from the settings).', callback=folder
    ),
]
