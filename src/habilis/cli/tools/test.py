"""`habilis tools test`."""

import sys
from collections.abc import Sequence

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.colours import has_colours
from habilis.cli.streams import say
from habilis.cli.tools.library import in_library, print_json
from habilis.forge.library.library import Library
from habilis.forge.library.retests import Retest, retest

_GREEN, _RED, _END = '\033[32m', '\033[31m', '\033[0m'


@in_library
async def run_tests(library: Library, names: Sequence[str], *, properties: bool, as_json: bool) -> int:
    """Run the tests of tools, of all if none is named; the exit code is 1 if one fails."""
    for name in names:
        library.current(name)  # a misspelt name is an error before anything runs
    chosen = list(dict.fromkeys(names)) or library.names()
    if not chosen:
        say(f'no tools in {library.folder} yet; add those that come with Habilis: habilis tools seed')
    progress = _Progress(len(chosen), is_silent=as_json)
    results = await retest(library, chosen, reviewed=properties, on_done=progress.show)
    failed = [result for result in results if not result.verification.ok]
    if as_json:
        print_json([_to_json(result) for result in results])
    elif chosen:
        say(f'{len(chosen) - len(failed)} of {len(chosen)} tools pass their tests')
    return 1 if failed else 0


class _Progress:
    """A line per tool; on a terminal, also how many there are still to come."""

    def __init__(self, total: int, *, is_silent: bool) -> None:
        self._total, self._done, self._is_silent = total, 0, is_silent
        self._counts = sys.stderr.isatty()

    def show(self, result: Retest) -> None:
        self._done += 1
        if self._is_silent:
            return
        if self._counts:
            print('\r\033[K', end='', file=sys.stderr, flush=True)
        print(_line(result), flush=True)
        if self._counts and self._done < self._total:
            print(f'{self._done} of {self._total}', end='', file=sys.stderr, flush=True)


def _line(result: Retest) -> str:
    tested = result.verification
    mark = '✓' if tested.ok else '✗'
    if has_colours(sys.stdout):
        mark = f'{_GREEN if tested.ok else _RED}{mark}{_END}'
    count = f'{len(tested.tests)} test{"" if len(tested.tests) == 1 else "s"}'
    line = f'{mark} {result.name} v{result.version}: {count}, {tested.seconds:.2f} s'
    more = [tested.report, *(f'note: {note}' for note in result.noted)]
    return '\n'.join([line, *(f'    {text}' for one in more if one for text in escape_controls(one).split('\n'))])


def _to_json(result: Retest) -> dict[str, object]:
    tested = result.verification
    return {
        'name': result.name,
        'version': result.version,
        'ok': tested.ok,
        'tests': tested.tests,
        'error': tested.error,
        'noted': result.noted,
        'seconds': tested.seconds,
    }
