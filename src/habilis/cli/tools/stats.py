"""`habilis tools stats`."""

from habilis.cli.printing import print_table
from habilis.cli.streams import say
from habilis.cli.tools.library import open_library, print_json
from habilis.forge.library.usage import ToolUsage


def show_stats(folder: str | None, *, as_json: bool) -> int:
    """Print the calls of each version."""
    library = open_library(folder)
    names = set(library.names())
    used = [one for one in library.usage.read() if one.name in names]
    if as_json:
        print_json(used)
        return 0
    if used:
        print_table(('NAME', 'VERSION', 'CALLS', 'OK', 'SECONDS PER CALL', 'LAST CALL'), [_row(one) for one in used])
    else:
        say('no tool was called yet; call one with: habilis tools run NAME ARGUMENTS…')
    return 0


def _row(one: ToolUsage) -> tuple[str, ...]:
    success, each = 1 - one.failed / one.calls, one.seconds / one.calls
    return one.name, str(one.version), str(one.calls), f'{success:.0%}', f'{each:.3f}', f'{one.last[:16]} UTC'
