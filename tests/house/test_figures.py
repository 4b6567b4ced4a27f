"""`make house`: what it counts."""

from pathlib import Path

from tests.house import figures

SAMPLE = (
    """from typing import Any, cast

class Entry: ...

def short(value: Any) -> dict[str, Any]:
    return cast('Any', value)

def long():
"""
    + '    pass\n' * 40
)


def sample(folder: Path) -> list[figures.Source]:
    """A package of two rooms."""
    for place in ('core/a.py', 'cli/run/b.py', '_version.py'):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SAMPLE if place != '_version.py' else '', encoding='utf-8')
    return figures.sources(folder)


def test_lines_and_uses_of_any_are_counted_in_each_room(tmp_path: Path) -> None:
    rooms = figures.by_room(sample(tmp_path))
    assert {room: figures.count_lines(files) for room, files in rooms.items()} == {'(root)': 0, 'cli': 48, 'core': 48}
    assert figures.any_per_thousand(rooms['core']) == 1000 * 3 / 48
    assert figures.count_casts(rooms['core']) == 1


def test_long_functions_and_repeated_classes_are_named(tmp_path: Path) -> None:
    files = sample(tmp_path)
    assert figures.long_functions(files) == [(41, 'core/a.py:long'), (41, 'cli/run/b.py:long')]
    assert figures.repeated_classes(files) == {'Entry': 2}


def test_the_frames_are_those_that_another_module_measures() -> None:
    assert all(figures.count_frames().values())
