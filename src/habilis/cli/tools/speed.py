"""`habilis tools bench` and `habilis tools optimise`."""

from collections.abc import Sequence

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.printing import print_table
from habilis.cli.streams import say
from habilis.cli.tools.edit import print_users
from habilis.cli.tools.library import in_library, open_model, print_json
from habilis.forge.build.speedups import optimise
from habilis.forge.checks.timing import compare_speed
from habilis.forge.library.library import Library


@in_library
async def compare_versions(library: Library, name: str, versions: Sequence[int], *, as_json: bool) -> int:
    """Print how long calls of versions of a tool take; by default of the one in use, and of the one before it."""
    current = library.current(name)
    chosen = versions or [*[one for one in library.versions(name) if one < current][-1:], current]
    timings = await compare_speed([library.candidate(name, version) for version in chosen])
    rows = [(version, timings.median(index), timings.speedup(index)) for index, version in enumerate(chosen)]
    if as_json:
        keys = ('version', 'seconds', 'speedup')
        print_json({'inputs': timings.inputs, 'versions': [dict(zip(keys, row, strict=True)) for row in rows]})
        return 0
    shown = [(str(version), f'{seconds * 1e6:,.1f}', f'{speedup:.2f}') for version, seconds, speedup in rows]
    print_table(('VERSION', 'MICROSECONDS PER CALL', 'TIMES AS FAST'), shown)
    say(f'medians over {timings.inputs} inputs, in sandboxes')
    return 0


@in_library
async def optimise_tool(library: Library, name: str, model: str | None, *, download: bool, as_json: bool) -> int:
    """Look for a faster version; the exit code is 1 if there is none."""
    version = library.current(name)  # a misspelt name is an error before a model is loaded
    async with open_model(model, download=download) as chosen:
        found = await optimise(library, chosen, name, watch=lambda reason: say(f'not kept: {escape_controls(reason)}'))
    if as_json:
        print_json(found)
    elif found.revision is None:
        say(f'no faster version was found; version {version} stays')
    else:
        made = found.revision.manifest
        print(f'{name}: version {made.version} is in use, {found.speedup:.1f} times as fast as version {version}')
        print_users(found.revision)
    return 0 if found.revision else 1
