"""`habilis tools list` and `habilis tools search`."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from habilis.agent.hooks.sanitize import one_line
from habilis.cli.printing import print_table
from habilis.cli.streams import say
from habilis.cli.tools.library import open_library, print_json
from habilis.core.errors import ForgeError
from habilis.forge.contract import Manifest
from habilis.forge.library.library import Library
from habilis.forge.library.usage import ToolUsage

_MIN_SUMMARY = 20


def list_tools(folder: str | None, *, as_json: bool) -> int:
    """Print all tools."""
    library = open_library(folder, fill=True)
    manifests, damaged = _read(library)
    usage = _usage(library)
    if as_json:
        rows = [{**asdict(made), **_counts(usage.get((made.name, made.version)))} for made in manifests]
        print_json(rows)
    elif manifests:
        cells = [(made.name, str(made.version), *_shown(usage.get((made.name, made.version)))) for made in manifests]
        _print(('NAME', 'VERSION', 'USES', 'OK', 'SUMMARY'), cells, [made.summary for made in manifests])
    elif not damaged:
        say(f'no tools in {library.folder} yet; add those that come with Habilis: habilis tools seed')
    for line in damaged:
        say(f'{line}; see: habilis tools doctor')
    return 1 if damaged else 0


def search_tools(query: str, folder: str | None, *, limit: int, threshold: float, as_json: bool) -> int:
    """Print the tools that fit a query, best first; the exit code is 1 if there is none."""
    found = open_library(folder, fill=True).search(query, limit=limit, threshold=threshold)
    if as_json:
        print_json(found)
    elif found:
        cells = [(one.name, str(one.version), f'{one.score:.2f}') for one in found]
        _print(('NAME', 'VERSION', 'SCORE', 'SUMMARY'), cells, [one.summary for one in found])
    else:
        say('no tool fits; list all with: habilis tools list')
    return 0 if found else 1


def _read(library: Library) -> tuple[list[Manifest], list[str]]:
    manifests, damaged = list[Manifest](), list[str]()
    for name in library.names():
        try:
            manifests.append(library.manifest(name))
        except ForgeError as error:
            damaged.append(str(error))
    return manifests, damaged


def _usage(library: Library) -> dict[tuple[str, int], ToolUsage]:
    try:
        return {(one.name, one.version): one for one in library.usage.read()}
    except ForgeError as error:
        say(str(error))
        return {}


def _counts(used: ToolUsage | None) -> Mapping[str, int]:
    return {'calls': used.calls if used else 0, 'failed': used.failed if used else 0}


def _shown(used: ToolUsage | None) -> tuple[str, str]:
    return (str(used.calls), f'{1 - used.failed / used.calls:.0%}') if used and used.calls else ('0', '–')


def _print(head: Sequence[str], rows: Sequence[Sequence[str]], summaries: Sequence[str]) -> None:
    """A table whose last column is shortened, so that a row is one line of the terminal."""
    widths = [max(len(name), *(len(row[index]) for row in rows)) + 2 for index, name in enumerate(head[:-1])]
    room = max(_MIN_SUMMARY, (shutil.get_terminal_size().columns or 80) - sum(widths))
    print_table(head, [(*row, one_line(summary, room)) for row, summary in zip(rows, summaries, strict=True)])
