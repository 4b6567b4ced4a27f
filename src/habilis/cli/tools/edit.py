"""`habilis tools edit`."""

from pathlib import Path

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.sandbox.run import SourceError, read_source
from habilis.cli.streams import say
from habilis.cli.tools.library import print_json, run_with_library
from habilis.core.errors import ForgeError
from habilis.forge.library import Library
from habilis.forge.revisions import revise
from habilis.forge.verification import KILL_SHARE


def edit_tool(name: str, file: Path, tests: Path | None, note: str, folder: str | None, *, as_json: bool) -> int:
    """Keep the code of a file as the next version of a tool."""
    try:
        code = read_source(str(file))
        new_tests = None if tests is None else read_source(str(tests))
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
        for user in revision.users:
            if user.problem:
                say(f'{user.name} keeps using the old version; with the new one: {escape_controls(user.problem)}')
            else:
                say(f'{user.name} uses the new version, as its version {user.version}')
        return 0

    return run_with_library(folder, work)
