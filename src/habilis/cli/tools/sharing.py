"""`habilis tools export` and `habilis tools import`."""

from collections.abc import Sequence
from pathlib import Path

from habilis.cli.streams import say
from habilis.cli.tools.library import clear_errors, in_library, open_library, print_json
from habilis.forge.library.library import Library
from habilis.forge.sharing.skills import export_skill, tool_archive
from habilis.forge.sharing.transfer import ImportReport, export_tools, import_tools


def export_file(names: Sequence[str], file: Path, folder: str | None, *, key: Path | None) -> int:
    """Write tools, with all that they use, to one file."""
    written = export_tools(open_library(folder), names, file, key=key)
    print(file)
    say(f'exported {", ".join(written)}' + (f', signed with {key}' if key else ''))
    return 0


def export_skills(names: Sequence[str], target: Path, folder: str | None) -> int:
    """Write each tool as an Agent Skill."""
    library = open_library(folder)
    for name in names:
        with clear_errors(library):
            print(export_skill(library, name, target))
    return 0


@in_library
async def import_file(library: Library, file: Path, *, trust: Path | None, as_json: bool) -> int:
    """Add the tools of a file or of an exported skill, after their tests have passed here."""
    report = await import_tools(library, tool_archive(file), trust=trust)
    if as_json:
        print_json(report)
    else:
        for made in report.added:
            print(made.name)
    if report.skipped:
        say(f'in the library already: {", ".join(report.skipped)}')
    say(f'imported {len(report.added)} tools into {library.folder}; {_origin(report, trust)}')
    return 0


def _origin(report: ImportReport, trust: Path | None) -> str:
    if not report.is_signed:
        return 'the file is unsigned'
    if not report.signer:
        return 'its signature was not checked, because ssh-keygen is not installed'
    known = f', a key of {trust}' if trust else '; to accept only keys that you trust: --trust PUBKEY'
    return f'the file is signed by {report.signer}{known}'
