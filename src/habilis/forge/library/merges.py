"""Merges two tools that do the same: one is kept with the tests of both, the other is hidden with its history."""

from dataclasses import replace

from habilis.core.errors import ForgeError
from habilis.forge.checks.agreement import find_difference
from habilis.forge.checks.inputs import calls_in
from habilis.forge.checks.verification import used_tools, verify
from habilis.forge.contract import LIBRARY_MODULE, Candidate, require_python
from habilis.forge.library.library import Library
from habilis.forge.library.revisions import Revision, UserUpdate, revise, update_user
from habilis.forge.library.source_edits import import_instead, joined_tests, tests_instead


async def merge(library: Library, keep: str, drop: str) -> Revision:
    """Replace a tool by another one. Returns the version that is kept, and the updates of the tools that use either.

    Raises `ForgeError` if they are not interchangeable: if the one that is kept fails the tests of the other, if they
    differ on a generated input, or if a tool that uses the other fails with it.
    """
    kept, dropped = library.candidate(keep), library.candidate(drop)
    if keep == drop or any(tool.name == drop for tool in used_tools(kept)):
        msg = f'{keep} is the same tool' if keep == drop else f'{keep} uses {drop}, so it cannot replace it'
        raise ForgeError(msg)
    for tool in (kept, dropped):
        require_python(tool, 'merged')
        if not (own := await verify(tool)).ok:
            msg = f'{tool.name} fails its own tests; change it first:\n{own.report}'
            raise ForgeError(msg)
    new = await _check(kept, dropped)
    users = library.users_of(drop)
    for user in users:
        tested = await verify(_rewritten(library.candidate(user), drop, new))
        if not tested.ok:
            msg = f'{user} uses {drop}, and fails with {keep}; change {user} first:\n{tested.report}'
            raise ForgeError(msg)
    made = library.manifest(keep)
    updates: list[UserUpdate] = []
    if new.tests != kept.tests:
        note = f'has the tests of {drop}, which was merged into it'
        revision = await revise(library, keep, kept.code, tests=new.tests, note=note, origin=made.origin)
        made, updates = revision.manifest, list(revision.users)
    for user in users:
        updates += await _change_user(library, user, drop, keep)
    library.hide(drop, merged_into=keep)
    return Revision(manifest=made, users=tuple(updates))


async def _check(kept: Candidate, dropped: Candidate) -> Candidate:
    """The tool that is kept, with the tests of both."""
    tests = tests_instead(dropped.tests, dropped.name, kept.name)
    passed = await verify(replace(kept, tests=tests))
    if not passed.ok:
        msg = f'{kept.name} fails the tests of {dropped.name}, so they do not do the same:\n{passed.report}'
        raise ForgeError(msg)
    calls = [*calls_in(kept.tests, kept.name), *calls_in(tests, kept.name)]
    difference = await find_difference([kept, dropped], calls)
    if difference is not None:
        (mine, other), keep, drop = difference.outcomes, kept.name, dropped.name
        msg = f'{keep} and {drop} do not do the same: {difference.call[:200]} {mine}, and {drop} {other}'
        raise ForgeError(msg)
    return replace(kept, tests=joined_tests(kept.tests, tests))


def _rewritten(user: Candidate, drop: str, kept: Candidate) -> Candidate:
    uses = {name: used for name, used in user.uses.items() if name != drop}
    code = import_instead(user.code, LIBRARY_MODULE, drop, kept.name)
    return replace(user, code=code, uses={**uses, kept.name: kept})


async def _change_user(library: Library, user: str, drop: str, keep: str) -> list[UserUpdate]:
    known, new = library.manifest(user), _rewritten(library.candidate(user), drop, library.candidate(keep))
    tested = await verify(new)
    uses = {**{name: version for name, version in known.uses.items() if name != drop}, keep: library.current(keep)}
    return await update_user(library, new, uses, tests=len(tested.tests), note=f'uses {keep} in place of {drop}')
