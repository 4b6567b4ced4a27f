"""Runs the tests of tools of the library again, in parallel sandboxes, and reviews the tools if asked to."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from habilis.core.errors import HabilisError
from habilis.forge.checks.review import review
from habilis.forge.checks.verification import PARALLEL, verify
from habilis.forge.contract import Verification
from habilis.forge.library.library import Library


@dataclass(frozen=True, kw_only=True)
class Retest:
    """Result of the tests of one tool."""

    name: str
    version: int
    """0 if the tool cannot be read."""

    verification: Verification
    noted: tuple[str, ...] = ()
    """What a review noted, if there was one."""


async def retest(
    library: Library,
    names: Iterable[str],
    *,
    reviewed: bool = False,
    on_done: Callable[[Retest], None] = lambda _: None,
) -> list[Retest]:
    """Test the current versions of these tools. `on_done` gets each result as soon as it is there.

    `reviewed`: review those that pass, too; what is refused counts as a failure.
    """
    slots = asyncio.Semaphore(PARALLEL)

    async def one(name: str) -> Retest:
        async with slots:
            result = await _retest(library, name)
            if reviewed and result.verification.ok:
                result = await _review(library, result)
        on_done(result)
        return result

    return list(await asyncio.gather(*map(one, names)))


async def _retest(library: Library, name: str) -> Retest:
    version = 0
    try:
        version = library.current(name)
        verification = await verify(library.candidate(name, version))
    except HabilisError as error:
        verification = Verification(error=str(error))
    return Retest(name=name, version=version, verification=verification)


async def _review(library: Library, result: Retest) -> Retest:
    found = await review(library.candidate(result.name, result.version))
    return replace(result, verification=replace(result.verification, error='\n'.join(found.refused)), noted=found.noted)
