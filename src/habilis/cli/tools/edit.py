"""`habilis tools edit` and `merge`."""

from pathlib import Path

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.sandbox.run import SourceError, read_source
from habilis.cli.streams import say
from habilis.cli.tools.add import tests_of_tool
from habilis.cli.tools.library import print_json, run_with_library
from habilis.core.errors import ForgeError
from habilis.forge.checks.mutation import KILL_SHARE
from habilis.forge.library.library import Library
from habilis.forge.library.merges import merge
from habilis.forge.library.revisions import Revision, revise


def edit_tool(name: str, file: Path, tests: Path | None, note: str, folder: str | None, *, as_json: bool) -> int:
    """Keep the code of a file as the next version of a tool."""
    try:
        code = read_source(str(file))
        new_tests = None if tests is None else tests_of_tool(read_source(str(tests)), file, tests)
    except SourceError as error:
        raise ForgeError(str(error)) from None

    async def work(library: Library) -> int:
        revision = await revise(library, name, code, tests=new_tests, note=note)
        made = revision.manifest
        if as_json:
            print_json(revision)
        else:
            print(f'{name}: version {made.version} is in use; it passes {made.tests} tests')
        if made.killed < KILL_SHARE * made.mutants:
            say(f'its tests notice only {made.killed} of {made.mutants} wrong variants of the code')
        print_users(revision)
        return 0

    return run_with_library(folder, work)


def merge_tools(keep: str, drop: str, folder: str | None, *, as_json: bool) -> int:
    """Let one tool take the place of another."""

    async def work(library: Library) -> int:
        last = library.current(drop)
        revision = await merge(library, keep, drop)
        if as_json:
            print_json(revision)
        else:
            print(f'{drop} was merged into {keep}, whose version {revision.manifest.version} is in use')
        say(f'to undo it: habilis tools rollback {drop} {last}')
        print_users(revision)
        return 0

    return run_with_library(folder, work)


def print_users(revision: Revision) -> None:
    """Say what became of the tools that use the changed one."""
    for user in revision.users:
        if user.problem:
            say(f'{user.name} keeps using the old version; with the new one: {escape_controls(user.problem)}')
        else:
            say(f'{user.name} uses the new version, as its version {user.version}')
