"""Modules of one room do not import each other in a circle, not even inside functions or for type hints.

Folders of one room import each other in one direction only.
"""

from pathlib import Path

import pytest

from tests.cases import each_case
from tests.house.cycles import cycles, folders_in_both_directions, import_graph
from tests.house.imports import MAY_IMPORT
from tests.house.repository import PACKAGE


@pytest.mark.parametrize('room', MAY_IMPORT)
def test_a_room_has_no_import_cycle(room: str) -> None:
    graph = import_graph(PACKAGE, room)
    assert graph
    assert cycles(graph) == []


@each_case('room', MAY_IMPORT)
def test_folders_of_a_room_import_each_other_in_one_direction(room: str) -> None:
    assert folders_in_both_directions(import_graph(PACKAGE, room)) == []


def write(package: Path, **sources: str) -> None:
    for name, source in sources.items():
        path = package / 'core' / f'{name}.py'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding='utf-8')


@pytest.mark.parametrize(
    'back',
    [
        'import habilis.core.a',
        'from habilis.core import a',
        'from habilis.core.a import thing',
        'from .a import thing',
        'def late() -> None:\n    from habilis.core.a import thing',
        'if TYPE_CHECKING:\n    from habilis.core.a import thing',
    ],
)
def test_a_cycle_is_found(tmp_path: Path, back: str) -> None:
    package = tmp_path / 'habilis'
    write(
        package, __init__='', a='from habilis.core.b import thing', b='from habilis.core import c', c=back, d='import a'
    )
    assert cycles(import_graph(package, 'core')) == [['habilis.core.a', 'habilis.core.b', 'habilis.core.c']]


def test_a_module_that_imports_from_its_own_package_is_a_cycle(tmp_path: Path) -> None:
    package = tmp_path / 'habilis'
    write(package, __init__='from habilis.core.a import thing', a='from habilis.core import other')
    assert cycles(import_graph(package, 'core')) == [['habilis.core', 'habilis.core.a']]


def test_modules_that_import_in_one_direction_are_no_cycle(tmp_path: Path) -> None:
    package = tmp_path / 'habilis'
    write(
        package,
        a='import json\nfrom habilis.core import b',
        b='from habilis.core.c import thing',
        c='import habilis.cli',
    )
    assert cycles(import_graph(package, 'core')) == []


@pytest.mark.parametrize(
    ('back', 'found'),
    [
        ('from habilis.core.one.a import thing', [('one', 'two')]),
        ('from habilis.core import one', [('one', 'two')]),
        ('from habilis.core.plain import thing', []),
        ('from habilis.core.two import other', []),
    ],
)
def test_folders_that_import_each_other_are_found(tmp_path: Path, back: str, found: list[tuple[str, str]]) -> None:
    package = tmp_path / 'habilis'
    for folder in ('one', 'two'):
        (package / 'core' / folder).mkdir(parents=True)
        (package / 'core' / folder / '__init__.py').touch()
    write(package, plain='from habilis.core.one import a', **{'one/a': 'import habilis.core.two.b', 'two/b': 'x = 1'})
    write(package, **{'two/c': back})
    assert folders_in_both_directions(import_graph(package, 'core')) == found
