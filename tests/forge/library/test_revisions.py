"""New versions of tools."""

from dataclasses import replace
from pathlib import Path

import pytest

from habilis.core.errors import ForgeError, ToolNotFound
from habilis.forge.library.library import Library
from habilis.forge.library.retests import retest
from habilis.forge.library.revisions import revise
from tests.forge.samples import double, fourfold

ADDING = 'def double(number: int) -> int:\n    """Twice a number."""\n    return number + number\n'


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = Library(tmp_path / 'library')
    made.add(double(), request='Double it.')
    return made


async def test_new_code_that_passes_the_old_tests_is_the_next_version(library: Library) -> None:
    made = (await revise(library, 'double', ADDING)).manifest
    assert (made.version, made.origin, made.request, made.tests) == (2, 'user', 'Double it.', 1)
    assert made.mutants == made.killed > 0
    assert library.candidate('double').code == ADDING
    with pytest.raises(ForgeError, match='this is version 2 of double already'):
        await revise(library, 'double', ADDING)


async def test_new_code_that_fails_the_old_tests_is_refused(library: Library) -> None:
    with pytest.raises(ForgeError, match=r'(?s)the tests of double fail.*--note.*version 1 stays.*got 9, expected 6'):
        await revise(library, 'double', double(factor=3).code, note='I want it')
    assert library.versions('double') == [1]


async def test_a_change_of_behaviour_needs_new_tests_and_a_reason(library: Library) -> None:
    new = double(factor=3)
    with pytest.raises(ForgeError, match=r'(?s)the tests of version 1 of double fail.*--note'):
        await revise(library, 'double', new.code, tests=new.tests)
    made = (await revise(library, 'double', new.code, tests=new.tests, note='three is better')).manifest
    assert (made.version, made.note) == (2, 'three is better')


async def test_tests_that_prove_nothing_are_refused(library: Library) -> None:
    with pytest.raises(ForgeError, match='does nothing'):
        await revise(library, 'double', ADDING, tests='def test_a() -> None: ...\n')


async def test_users_that_pass_use_the_new_version(library: Library) -> None:
    library.add(fourfold())
    revision = await revise(library, 'double', ADDING)
    assert [(user.name, user.version, user.problem) for user in revision.users] == [('fourfold', 2, '')]
    assert library.manifest('fourfold').uses == {'double': 2}
    assert library.manifest('fourfold').note == 'uses version 2 of double'
    assert library.manifest('fourfold', 1).uses == {'double': 1}


async def test_users_that_fail_keep_the_old_version_and_work(library: Library) -> None:
    library.add(fourfold())
    new = double(factor=3)
    [user] = (await revise(library, 'double', new.code, tests=new.tests, note='three is better')).users
    assert user.version == 1
    assert 'got 27, expected 12' in user.problem
    assert all(one.verification.ok for one in await retest(library, ['double', 'fourfold']))


async def test_a_cycle_or_a_missing_tool_is_refused(library: Library) -> None:
    library.add(fourfold())
    with pytest.raises(ForgeError, match='would use itself'):
        await revise(library, 'double', f'from library import fourfold\n{ADDING}')
    with pytest.raises(ToolNotFound, match='nothing_here'):
        await revise(library, 'double', f'from library import nothing_here\n{ADDING}')
    assert library.versions('double') == [1]


async def test_tools_are_tested_again_also_damaged_ones(library: Library) -> None:
    library.add(replace(double('wrong'), code=double('wrong', factor=3).code))
    library.add(double('damaged'))
    (library.folder / 'damaged' / 'v1' / 'tool.py').unlink()
    seen: list[str] = []
    results = await retest(library, library.names(), on_done=lambda one: seen.append(one.name))
    assert {one.name: one.verification.ok for one in results} == {'damaged': False, 'double': True, 'wrong': False}
    assert sorted(seen) == ['damaged', 'double', 'wrong']
