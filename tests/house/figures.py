"""The figures of the house: how large its rooms are, and how well they are kept. `make house` prints them."""

import argparse
import ast
import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import io
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from habilis.core.syntax import parse_module
from tests.house.cycles import cycles, folders_in_both_directions, import_graph
from tests.house.repository import PACKAGE

LONG_FUNCTION = 40
"""Functions with more lines than this are listed."""

SHOWN_FILES = 5
FRAMES = 'tests.house.frames'
_ROOT = '(root)'
_ANY = re.compile(r'\bAny\b')
_IMPORT = re.compile(r'^\s*(?:from|import)\s.*', re.MULTILINE)
_CAST = re.compile(r'\bcast\(')


@dataclass(frozen=True)
class Source:
    """One file of the package."""

    path: Path
    """Below the folder of the package."""

    text: str

    @property
    def room(self) -> str:
        """The room it is in."""
        return self.path.parts[0] if len(self.path.parts) > 1 else _ROOT

    @property
    def lines(self) -> int:
        """Number of lines."""
        return self.text.count('\n')

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return parse_module(self.text)


def sources(package: Path = PACKAGE) -> list[Source]:
    """All Python files of a package."""
    return [Source(path.relative_to(package), path.read_text('utf-8')) for path in sorted(package.rglob('*.py'))]


def by_room(files: Sequence[Source]) -> dict[str, list[Source]]:
    """The files of each room."""
    rooms: dict[str, list[Source]] = {}
    for file in files:
        rooms.setdefault(file.room, []).append(file)
    return rooms


def count_lines(files: Sequence[Source]) -> int:
    """Lines of all these files."""
    return sum(file.lines for file in files)


def any_per_thousand(files: Sequence[Source]) -> float:
    """How often `Any` is written per 1,000 lines, imports left out."""
    uses = sum(len(_ANY.findall(_IMPORT.sub('', file.text))) for file in files)
    return 1000 * uses / max(count_lines(files), 1)


def count_casts(files: Sequence[Source]) -> int:
    """How often `cast` is called."""
    return sum(len(_CAST.findall(file.text)) for file in files)


def long_functions(files: Sequence[Source]) -> list[tuple[int, str]]:
    """Functions over 40 lines, as lines and `file:name`. The longest comes first."""
    found = [
        (length, f'{file.path.as_posix()}:{node.name}')
        for file in files
        for node in ast.walk(file.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > LONG_FUNCTION
    ]
    return sorted(found, reverse=True)


def repeated_classes(files: Sequence[Source]) -> dict[str, int]:
    """Names of classes that several files define, and how many do."""
    count = Counter(node.name for file in files for node in file.tree.body if isinstance(node, ast.ClassDef))
    return {name: times for name, times in sorted(count.items()) if times > 1}


def _report(package: Path) -> Iterator[str]:
    files = sources(package)
    rooms = by_room(files)
    yield f'{"room":10} {"lines":>7} {"Any per 1,000":>14} {"cast(":>6}'
    for room, inside in [*rooms.items(), ('total', files)]:
        yield f'{room:10} {count_lines(inside):7,} {any_per_thousand(inside):14.1f} {count_casts(inside):6}'
    graphs = {room: import_graph(package, room) for room in rooms if room != _ROOT}
    yield from _listed('circles', [' ↔ '.join(group) for graph in graphs.values() for group in cycles(graph)])
    pairs = [
        f'{room}: {" ↔ ".join(pair)}' for room, graph in graphs.items() for pair in folders_in_both_directions(graph)
    ]
    yield from _listed('folders that import each other', pairs)
    yield from _listed(
        f'functions over {LONG_FUNCTION} lines', [f'{n:3} {where}' for n, where in long_functions(files)]
    )
    repeated = repeated_classes(files)
    yield from _listed('class names defined more than once', [f'{times} {name}' for name, times in repeated.items()])
    largest = sorted(files, key=lambda file: -file.lines)[:SHOWN_FILES]
    yield from ['', 'largest files', *(f'  {file.lines:3} {file.path.as_posix()}' for file in largest)]


def _listed(title: str, items: Sequence[str]) -> list[str]:
    return ['', f'{title}: {len(items)}', *(f'  {item}' for item in items)]


def count_frames() -> dict[str, int]:
    """Frames of our code on each way that `frames.py` measures; none where that module is not there."""
    if importlib.util.find_spec(FRAMES) is None:
        return {}
    ways = {
        name.removeprefix('frames_of_').replace('_', ' '): way
        for name, way in vars(importlib.import_module(FRAMES)).items()
        if name.startswith('frames_of_')
    }
    return {name: len(_measure(way)) for name, way in ways.items()}


def _measure(way: Any) -> Sequence[str]:
    """Call one of the functions of `frames.py`; what it prints is not ours."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        found = way(*[Path(folder)] * len(inspect.signature(way).parameters))
        return asyncio.run(found) if inspect.iscoroutine(found) else found


def main() -> None:
    """Print the figures of this package or of another one, such as that of an earlier commit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('package', nargs='?', type=Path, default=PACKAGE, help='folder of the package (default: ours)')
    package: Path = parser.parse_args().package.resolve()
    for line in _report(package):
        print(line)
    frames = count_frames() if package == PACKAGE else {}
    if frames:
        print('\nframes')
    for name, count in frames.items():
        print(f'  {count:3} {name}')


if __name__ == '__main__':
    main()
