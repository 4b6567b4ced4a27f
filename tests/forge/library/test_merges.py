"""Two tools that do the same become one."""

from dataclasses import replace
from pathlib import Path

import pytest

from habilis.core.errors import ForgeError, ToolNotFound
from habilis.forge.contract import Candidate
from habilis.forge.library.checkup import check_library
from habilis.forge.library.library import Library
from habilis.forge.library.merges import merge
from habilis.forge.library.retests import retest
from tests.forge.samples import double, fourfold, tool

ADDING = 'def twice(value: int) -> int:\n    """Twice a number."""\n    return value + value\n'
TESTS = 'from tool import twice\n\n\ndef test_three() -> None:\n    assert twice(-4) == -8\n'


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = Library(tmp_path / 'library')
    made.add(double(), origin='seed')
    made.add(Candidate(name='twice', code=ADDING, tests=TESTS))
    return made


async def test_the_kept_tool_gets_the_tests_of_the_other(library: Library) -> None:
    [similar] = check_library(library)
    assert similar.fix == 'habilis tools merge double twice'
    made = (await merge(library, 'double', 'twice')).manifest
    assert (made.version, made.tests, made.origin) == (2, 2, 'seed')
    assert 'twice, which was merged into it' in made.note
    assert library.candidate('double').tests == (
        'from tool import double\n\n\ndef test_three() -> None:\n    assert double(3) == 6\n\n\n'
        'def test_three_2() -> None:\n    assert double(-4) == -8\n'
    )
    assert (library.names(), check_library(library)) == (['double'], [])
    assert [one.name for one in library.search('twice a number')] == ['double']
    with pytest.raises(ToolNotFound, match=r'twice was merged into double; to use it again: .* rollback twice 1'):
        library.candidate('twice')


async def test_its_history_stays_and_it_can_come_back(library: Library) -> None:
    await merge(library, 'double', 'twice')
    assert library.candidate('twice', 1).code == ADDING
    library.use_version('twice', 1)
    assert library.candidate('twice').code == ADDING
    await merge(library, 'double', 'twice')
    assert library.versions('double') == [1, 2], 'it has these tests already'
    assert library.add(double('twice')).version == 2


async def test_users_are_rewritten_and_tested(library: Library) -> None:
    library.add(fourfold())
    code = fourfold().code.replace('fourfold', 'eightfold').replace('double(double', 'double(fourfold')
    code = code.replace('import double', 'import double, fourfold')
    library.add(Candidate(name='eightfold', code=code, tests='def test_a() -> None: ...\n'))
    revision = await merge(library, 'twice', 'double')
    changed = {user.name: user.version for user in revision.users if not user.problem}
    assert set(changed) == {'fourfold', 'eightfold'}
    assert 'from library import twice as double\n' in library.candidate('fourfold').code
    assert library.manifest('fourfold').uses == {'twice': 2}
    assert library.manifest('eightfold').uses == {'twice': 2, 'fourfold': changed['fourfold']}
    assert library.candidate('fourfold', 1).uses['double'] == double()
    assert all(result.verification.ok for result in await retest(library, ['fourfold']))


async def test_a_user_that_would_break_prevents_it(library: Library) -> None:
    strict = 'from library import double\n\n\ndef named(number: int) -> int:\n    """By name."""\n    return double('
    tests = 'from tool import named\n\n\ndef test_it() -> None:\n    assert named(2) == 4\n'
    library.add(Candidate(name='named', code=f'{strict}number=number)\n', tests=tests))
    with pytest.raises(ForgeError, match=r'(?s)named uses double, and fails with twice; change named first.*TypeError'):
        await merge(library, 'twice', 'double')
    assert library.versions('twice') == library.versions('double') == [1]


async def test_tools_that_differ_are_not_merged(library: Library) -> None:
    with pytest.raises(ForgeError, match='the same tool'):
        await merge(library, 'double', 'double')
    library.add(double('triple', factor=3))
    with pytest.raises(ForgeError, match=r'(?s)double fails the tests of triple.*got 6, expected 9'):
        await merge(library, 'double', 'triple')
    near = tool('near', 'return number * 2 if number < 4 else 0', TESTS.replace('twice', 'near'))
    library.add(near)
    with pytest.raises(ForgeError, match=r'do not do the same: double\(\d+\) gives \d+, and near gives 0'):
        await merge(library, 'double', 'near')
    picky = replace(double('picky'), code=double('picky').code.replace('return', "assert number == 3, 'x'\n    return"))
    library.add(picky)
    with pytest.raises(ForgeError, match='picky raises AssertionError'):
        await merge(library, 'double', 'picky')
    library.add(fourfold())
    with pytest.raises(ForgeError, match='fourfold uses double'):
        await merge(library, 'fourfold', 'double')
    assert library.names() == ['double', 'fourfold', 'near', 'picky', 'triple', 'twice']


async def test_floats_may_differ_in_their_last_digit(library: Library) -> None:
    head, tests = (
        '(number: float) -> float',
        'from tool import one\n\n\ndef test_it() -> None:\n    assert one(10.0) == 1\n',
    )
    library.add(tool('one', 'return number * 0.1', tests, head=head))
    library.add(tool('other', 'return number / 10', tests.replace('one', 'other'), head=head))
    await merge(library, 'one', 'other')


async def test_a_tool_that_was_broken_by_hand_is_not_merged(library: Library) -> None:
    (library.folder / 'twice' / 'v1' / 'test_tool.py').write_text('def test_(')
    with pytest.raises(ForgeError, match='twice fails its own tests; change it first'):
        await merge(library, 'double', 'twice')
