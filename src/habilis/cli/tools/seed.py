"""`habilis tools seed`."""

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.streams import say
from habilis.cli.tools.library import in_library, print_json
from habilis.forge.library.library import Library
from habilis.forge.library.seed_tools import seed


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
