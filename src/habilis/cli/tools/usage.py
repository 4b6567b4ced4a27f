"""`habilis tools stats` and `suggest`."""

from habilis.agent.hooks.sanitize import one_line
from habilis.cli.printing import print_table
from habilis.cli.streams import say
from habilis.cli.tools.library import open_library, print_json
from habilis.forge.build.composition import suggest
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


def show_suggestions(folder: str | None, *, as_json: bool) -> int:
    """Print what the usage of the library suggests."""
    library = open_library(folder)
    found = suggest(library)
    if as_json:
        print_json(found)
        return 0
    parts = {
        'most successful:': [f'{one.name}: {one.successes} of {one.calls} calls' for one in found.popular],
        'worked together, so one tool may do it:': [
            f'habilis tools compose {" ".join(one.tools)} --name NAME  '
            f'# {len(one.tasks)} runs, such as {one_line(one.tasks[-1], 80)!r}'
            for one in found.compose
        ],
        'may be deleted (habilis tools rm NAME):': [f'{one.name}: {one.reason}' for one in found.retire],
    }
    for head, lines in parts.items():
        if lines:
            print(head, *(f'  {line}' for line in lines), sep='\n')
    if not any(parts.values()):
        say('nothing to suggest yet: no tool was called')
    return 0
