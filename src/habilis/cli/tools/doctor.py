"""`habilis tools doctor`."""

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.streams import say
from habilis.cli.tools.library import in_library, print_json
from habilis.forge.library.checkup import Problem, check_library, repair
from habilis.forge.library.library import Library


@in_library
async def check(library: Library, *, fix: bool, as_json: bool) -> int:
    """Print what is wrong with the library; the exit code is 1 if something does not work."""
    done = await repair(library) if fix else []
    problems = check_library(library)
    if as_json:
        print_json({'ok': not any(one.is_error for one in problems), 'problems': problems, 'done': done})
    else:
        for line in done:
            print(escape_controls(line))
        for problem in problems:
            print(_line(problem))
        if not problems:
            say(f'{len(library.names())} tools in {library.folder}, no problems')
    return 1 if any(one.is_error for one in problems) else 0


def _line(problem: Problem) -> str:
    mark, name = '✗' if problem.is_error else '–', f'{problem.tool}: ' if problem.tool else ''
    return escape_controls(f'{mark} {name}{problem.what} → {problem.fix}')
