"""`habilis tools suggest`."""

from habilis.agent.hooks.sanitize import one_line
from habilis.cli.streams import say
from habilis.cli.tools.library import open_library, print_json
from habilis.forge.build.composition import suggest


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
