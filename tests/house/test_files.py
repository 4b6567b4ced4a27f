"""What every file of the repository keeps to."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.repository import PACKAGE, ROOT

LONGEST = 450
LONGEST_README = 180

BUILT = frozenset(
    {
        '__pycache__',
        '.git',
        '.gradio',
        '.hypothesis',
        '.pytest_cache',
        '.ruff_cache',
        '.venv',
        'build',
        'dist',
        'node_modules',
        'site',
    }
)
TEXT = frozenset(
    {'', '.cfg', '.css', '.html', '.js', '.json', '.md', '.py', '.pyi', '.sh', '.toml', '.txt', '.wit', '.yml'}
)

# Each pattern holds a bracket, so that this file does not match itself.
MACHINE = re.compile(
    r"""
    (?<![\w.*)}/-]) / (?:[w]ork | [h]ome/\w+ | [U]sers/\w+) /   # an absolute path of one machine
    | [.]pyenv/versions | [.]library/
    | pythonhosted[.]org | registry[.]npmjs                     # a package registry
    | /simple/? (?= [\s'"`)] | $ ) | -index[-]url | trusted[-]host
    """,
    re.VERBOSE,
)


def files(folder: Path) -> Iterator[Path]:
    """The text files under `folder` that somebody wrote."""
    for path in sorted(folder.iterdir()):
        if path.name in BUILT or path.is_symlink():
            continue
        if path.is_dir():
            yield from files(path)
        elif path.suffix in TEXT:
            yield path


def lines_about_one_machine(path: Path) -> list[str]:
    """The lines that would be wrong on another machine, as `file:line: text`."""
    lines = path.read_text(encoding='utf-8').splitlines()
    return [f'{path.name}:{number}: {line.strip()}' for number, line in enumerate(lines, 1) if MACHINE.search(line)]


def test_no_source_file_is_too_long_to_hold_in_mind() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text('utf-8').splitlines()) for path in PACKAGE.rglob('*.py')}
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}


def test_the_readme_is_short() -> None:
    assert len((ROOT / 'README.md').read_text('utf-8').splitlines()) <= LONGEST_README


def test_every_room_says_what_it_owns() -> None:
    rooms = [path for path in PACKAGE.iterdir() if path.is_dir() and path.name not in BUILT]
    assert [room.name for room in rooms if not (room / 'README.md').is_file()] == []


def test_no_file_depends_on_one_machine() -> None:
    assert [line for path in files(ROOT) for line in lines_about_one_machine(path)] == []


@pytest.mark.parametrize(
    'line',
    [
        'cd {slash}work/main',
        "root = '{slash}home/ann/habilis'",
        'see {slash}Users/ann/habilis',
        'pip install --index{dash}url http://mirror.test',
        'https://mirror.test{slash}simple',
        "url = 'https://files.pythonhosted{dot}org/packages'",
    ],
)
def test_a_line_about_one_machine_is_found(tmp_path: Path, line: str) -> None:
    written = tmp_path / 'notes.md'
    written.write_text('Fine.\n' + line.format(slash='/', dash='-', dot='.') + '\n', encoding='utf-8')
    [found] = lines_about_one_machine(written)
    assert found.startswith('notes.md:2: ')


@pytest.mark.parametrize(
    'line',
    [
        "open('/workspace/data.csv')",
        'docs/work/plan.md',
        "open('/etc/passwd')",
        'See https://example.org/home/page/ for a simple case.',
        "Path('/') / 'home'",
    ],
)
def test_an_innocent_line_passes(tmp_path: Path, line: str) -> None:
    written = tmp_path / 'notes.md'
    written.write_text(line, encoding='utf-8')
    assert lines_about_one_machine(written) == []
