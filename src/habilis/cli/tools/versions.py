"""`habilis tools history`, `rollback` and `rm`."""

import sys
from collections.abc import Sequence
from dataclasses import asdict

import typer

from habilis.cli.printing import print_table
from habilis.cli.streams import say
from habilis.cli.tools.library import clear_errors, open_library, print_json
from habilis.core.errors import ForgeError
from habilis.forge.contract import Manifest
from habilis.forge.library.library import Library


def show_history(name: str, folder: str | None, *, as_json: bool) -> int:
    """Print the versions of a tool, newest first."""
    library = open_library(folder)
    current, code = library.current(name), 0
    manifests: list[Manifest] = []
    for version in reversed(library.versions(name)):
        try:
            manifests.append(library.manifest(name, version))
        except ForgeError as error:
            say(str(error))
            code = 1
    if as_json:
        print_json([{**asdict(made), 'current': made.version == current} for made in manifests])
    else:
        head = ('VERSION', '', 'CREATED', 'ORIGIN', 'TESTS', 'NOTE')
        print_table(head, [_row(made, current) for made in manifests])
    return code


def _row(made: Manifest, current: int) -> tuple[str, ...]:
    mark = 'in use' if made.version == current else ''
    return str(made.version), mark, f'{made.created:%Y-%m-%d %H:%M}', made.origin, str(made.tests), made.note


def roll_back(name: str, version: int, folder: str | None) -> int:
    """Use another version from now on."""
    library = open_library(folder)
    before = library.current(name) if name in library else 0
    with clear_errors(library):
        library.use_version(name, version)
    was = ' already' if before == version else f', was {before}' if before else ' again'
    print(f'{name}: version {version} is in use{was}')
    for user in library.users_of(name):
        used = library.manifest(user).uses[name]
        if used != version:
            say(f'{user} keeps using version {used} of {name}, which it was tested with')
    return 0


def remove_tools(names: Sequence[str], folder: str | None, *, yes: bool) -> int:
    """Delete tools with all their versions; none if one of them does not exist."""
    library = open_library(folder)
    _check_users(library, names)
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        what = names[0] if len(names) == 1 else f'{len(names)} tools'
        if not typer.confirm(f'Delete {what} with all versions?', err=True):
            say('nothing deleted')
            return 1
    with clear_errors(library):
        left = list(dict.fromkeys(names))
        while left:  # a tool after those that use it
            name = next((name for name in left if not library.users_of(name)), left[0])
            library.remove(name)
            left.remove(name)
            print(f'deleted {name}')
    return 0


def _check_users(library: Library, names: Sequence[str]) -> None:
    for name in names:
        if users := [user for user in library.users_of(name) if user not in names]:
            msg = f'{name} is used by {", ".join(users)}: delete these too, or none'
            raise ForgeError(msg)
