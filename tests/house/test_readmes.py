"""Every module is listed in the README of its folder, or in one above it."""

from pathlib import Path

from tests.cases import each_case
from tests.house.repository import BENCHMARKS, PACKAGE, ROOT

ROOMS = [*sorted(path.parent for path in PACKAGE.glob('*/__init__.py')), BENCHMARKS]


def readme_of(module: Path) -> Path:
    return next(folder / 'README.md' for folder in module.parents if (folder / 'README.md').exists())


@each_case('room', ROOMS)
def test_every_module_of_a_room_is_listed_in_a_readme(room: Path) -> None:
    missing = [
        str(module.relative_to(ROOT))
        for module in sorted(room.rglob('*.py'))
        if module.name != '__init__.py' and f'{module.name}`' not in readme_of(module).read_text(encoding='utf-8')
    ]
    assert missing == []


@each_case('room', ROOMS)
def test_every_room_has_a_readme(room: Path) -> None:
    assert (room / 'README.md').read_text(encoding='utf-8').startswith(f'# {room.name}\n')
