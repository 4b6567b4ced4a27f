"""`habilis tools export` and `habilis tools import`."""

from collections.abc import Sequence
from pathlib import Path

from habilis.cli.streams import say
from habilis.cli.tools.library import clear_errors, open_library, print_json, run_with_library
from habilis.forge.library import Library
from habilis.forge.sharing import export_tools, import_tools
from habilis.forge.skills import export_skill


def export_file(names: Sequence[str], file: Path, folder: str | None) -> int:
    """Write tools, with all that they use, to one file."""
    written = export_tools(open_library(folder), names, file)
    print(file)
    say(f'exported {", ".join(written)}')
    return 0


def export_skills(names: Sequence[str], target: Path, folder: str | None) -> int:
    """Write each tool as an Agent Skill."""
    library = open_library(folder)
    for name in names:
        with clear_errors(library):
            print(export_skill(library, name, target))
    return 0


def import_file(file: Path, folder: str | None, *, as_json: bool) -> int:
    """Add the tools of a file, after their tests have passed here."""

    async def work(library: Library) -> int:
        report = await import_tools(library, file)
        if as_json:
            print_json(report)
        else:
            for made in report.added:
                print(made.name)
        if report.skipped:
            say(f'in the library already: {", ".join(report.skipped)}')
        say(f'imported {len(report.added)} tools into {library.folder}')
        return 0

    return run_with_library(folder, work)
