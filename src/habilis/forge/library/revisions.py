"""New versions of tools: they pass the tests of the version before, and the tools that use them are tested again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from habilis.core.errors import ForgeError
from habilis.forge.checks.mutation import mutation_score
from habilis.forge.checks.verification import passes_when_wrong, verify
from habilis.forge.contract import Candidate, Manifest, Verification
from habilis.forge.library.library import Library


@dataclass(frozen=True, kw_only=True)
class UserUpdate:
    """Effect of a new version of a tool on a tool that uses it."""

    name: str
    version: int
    """Its new version, which uses the new one; its version as before if it keeps using the old one."""

    problem: str = ''
    """Why it keeps using the old version."""


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A new version of a tool."""

    manifest: Manifest
    users: tuple[UserUpdate, ...] = ()


async def revise(
    library: Library, name: str, code: str, *, tests: str | None = None, note: str = '', origin: str = 'user'
) -> Revision:
    """Keep new code, and perhaps new tests, as the next version.

    Raises `ForgeError` if its tests fail, or if it fails those of the version before and no `note` says why it may.
    """
    old, known = library.candidate(name), library.manifest(name)
    uses = library.uses_of(code, name, old.language)
    new = replace(old, code=code, tests=old.tests if tests is None else tests, uses=uses)
    if (new.code, new.tests) == (old.code, old.tests) and not library.is_edited(name):
        msg = f'this is version {known.version} of {name} already'
        raise ForgeError(msg)
    passed = await _check(new, known.version, is_new_tests=new.tests != old.tests)
    if new.tests != old.tests and not note:
        before = await verify(replace(new, tests=old.tests))
        if not before.ok:
            msg = (
                f'the tests of version {known.version} of {name} fail, so its users may break:\n{before.report}\n'
                'if that is meant, give the reason with --note'
            )
            raise ForgeError(msg)
    score = await mutation_score(new, seconds=passed.seconds)
    made = library.add(
        new,
        replaces=True,
        origin=origin,
        request=known.request,
        tags=known.tags,
        note=note,
        tests=len(passed.tests),
        mutants=score.total,
        killed=score.killed,
    )
    return Revision(manifest=made, users=tuple(await update_users(library, made)))


async def _check(new: Candidate, version: int, *, is_new_tests: bool) -> Verification:
    passed = await verify(new)
    if not passed.ok:
        hint = '' if is_new_tests else '; if its behaviour changes on purpose, use --tests FILE and --note REASON'
        msg = f'the tests of {new.name} fail{hint} (version {version} stays):\n{passed.report}'
        raise ForgeError(msg)
    if is_new_tests and (wrong := await passes_when_wrong(new)):
        msg = f'the tests of {new.name} pass on a function that {wrong}, so they prove nothing'
        raise ForgeError(msg)
    return passed


async def update_users(library: Library, made: Manifest) -> list[UserUpdate]:
    """Test the tools that use the new version, and let those that pass use it, as new versions of their own."""
    updates: list[UserUpdate] = []
    for user in library.users_of(made.name):
        known, old = library.manifest(user), library.candidate(user)
        new = replace(old, uses={**old.uses, made.name: library.candidate(made.name, made.version)})
        tested = await verify(new)
        if not tested.ok:
            updates.append(UserUpdate(name=user, version=known.version, problem=tested.report))
            continue
        note, uses = f'uses version {made.version} of {made.name}', {**known.uses, made.name: made.version}
        updates += await update_user(library, new, uses, tests=len(tested.tests), note=note)
    return updates


async def update_user(
    library: Library, new: Candidate, uses: Mapping[str, int], *, tests: int, note: str
) -> list[UserUpdate]:
    """Keep a tested version that differs only in what it uses, and update the tools that use it in turn."""
    known = library.manifest(new.name)
    facts = {field: getattr(known, field) for field in ('origin', 'request', 'tags', 'mutants', 'killed')}
    made = library.add(new, replaces=True, note=note, uses=uses, tests=tests, **facts)
    return [UserUpdate(name=new.name, version=made.version), *await update_users(library, made)]
