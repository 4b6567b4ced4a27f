"""Modules of one room do not import each other in a circle, not even inside functions or for type hints."""

from pathlib import Path

import pytest

from tests.house.cycles import cycles, import_graph
from tests.house.repository import PACKAGE

ROOMS_WITHOUT_CYCLES = ('core', 'journal', 'flows', 'models', 'agent', 'assistant', 'cli')
"""Extend this tuple when the cycles of another room are removed."""


def test_these_rooms_have_no_import_cycles() -> None:
    graphs = {room: import_graph(PACKAGE, room) for room in ROOMS_WITHOUT_CYCLES}
    assert all(graphs.values())
    assert {room: found for room, graph in graphs.items() if (found := cycles(graph))} == {}


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
