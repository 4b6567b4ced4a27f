"""`habilis tools add` and `seed`."""

from pathlib import Path

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.sandbox.run import SourceError, read_source
from habilis.cli.streams import say
from habilis.cli.tools.library import in_library, print_json, run_with_library
from habilis.core.errors import ForgeError
from habilis.forge.contract import Candidate
from habilis.forge.javascript import definition
from habilis.forge.library.additions import add_tool, function_name
from habilis.forge.library.library import Library
from habilis.forge.library.seed_tools import seed
from habilis.forge.library.source_edits import import_as_tool


def add_file(file: Path, tests: Path | None, note: str, folder: str | None, *, as_json: bool) -> int:
    """Keep the function of a file as a new tool."""
    beside = file.with_name(f'test_{file.name}')
    if tests is None and not beside.exists():
        msg = f'there are no tests: write them to {beside}, or name their file with --tests FILE'
        raise ForgeError(msg)
    try:
        code, checks = read_source(str(file)), read_source(str(tests or beside))
    except SourceError as error:
        raise ForgeError(str(error)) from None
    checks = tests_of_tool(checks, file, tests or beside)
    if file.suffix == '.js':
        candidate = Candidate(name=file.stem, code=code, tests=checks, language='javascript')
    else:
        candidate = Candidate(name=function_name(code, file.stem), code=code, tests=checks)

    async def work(library: Library) -> int:
        made = await add_tool(library, candidate, note=note)
        if as_json:
            print_json(made)
        else:
            noticed = f', which notice {made.killed} of {made.mutants} wrong variants' if made.mutants else ''
            print(f'{made.name}: version {made.version} is in use; it passes {made.tests} tests{noticed}')
            for found in made.findings:
                say(f'note: {found}')
        return 0

    return run_with_library(folder, work)


def tests_of_tool(checks: str, file: Path, tests: Path) -> str:
    """Tests that import their function from a file, as tests of a tool."""
    if file.suffix == '.js':
        return definition.import_as_tool(checks, file.stem)
    try:
        return import_as_tool(checks, file.stem)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        msg = f'{tests} is not Python: {error}'
        raise ForgeError(msg) from error


@in_library
async def add_seeds(library: Library, *, as_json: bool) -> int:
    """Add the seeds that are missing; the exit code is 1 if the tests of one fail."""
    report = await seed(library, on_start=lambda number: say(f'testing {number} tools') if number else None)
    if as_json:
        print_json(report)
    else:
        for name in report.added:
            print(name)
    for line in report.failed:
        say(f'not added: {escape_controls(line)}')
    if report.added:
        say(f'added {len(report.added)} tools to {library.folder}, kept {len(report.kept)}')
    elif not report.failed:
        say(f'all {len(report.kept)} seeds are in {library.folder}; nothing changed')
    return 1 if report.failed else 0
