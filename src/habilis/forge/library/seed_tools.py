"""Adds the seeds: tools that come with Habilis."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from habilis.core.errors import ToolExists
from habilis.forge.checks.verification import verify_all
from habilis.forge.contract import Candidate
from habilis.forge.library.library import Library
from habilis.forge.source import read_source

_BLOCK = re.compile(r'^```python\n(.*?)^```$', re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class SeedReport:
    """What was added."""

    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Names that the library has already; they are never changed."""

    failed: tuple[str, ...] = ()
    """Seeds whose tests fail on this machine, each with the reason."""


@cache
def seeds() -> dict[str, Candidate]:
    """All seeds, each after those that it uses."""
    pages = sorted(Path(str(files('habilis.forge').joinpath('seeds'))).glob('*.md'))
    sources = {page.stem: _BLOCK.findall(page.read_text(encoding='utf-8')) for page in pages}
    made: dict[str, Candidate] = {}

    def add(name: str) -> Candidate:
        if name not in made:
            code, tests = sources[name]
            uses = {used: add(used) for used in read_source(name, code).uses}
            made[name] = Candidate(name=name, code=code, tests=tests, uses=uses)
        return made[name]

    for name in sources:
        add(name)
    return made


async def seed(library: Library, *, on_start: Callable[[int], None] = lambda _: None) -> SeedReport:
    """Verify and add the seeds that are missing. `on_start` gets their number.

    A seed that was merged into another tool is not missing.
    """
    missing = [
        candidate for name, candidate in seeds().items() if name not in library and not library.merged_into(name)
    ]
    on_start(len(missing))
    added, failed = list[str](), list[str]()
    for candidate, result in zip(missing, await verify_all(missing), strict=True):
        if not result.ok:
            failed.append(f'{candidate.name}: {result.report}')
            continue
        try:
            library.add(candidate, origin='seed', tests=len(result.tests))
        except ToolExists:  # another process was faster
            continue
        added.append(candidate.name)
    kept = [name for name in seeds() if name not in added and name in library]
    return SeedReport(added=tuple(added), kept=tuple(kept), failed=tuple(failed))
