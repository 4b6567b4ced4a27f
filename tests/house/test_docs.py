"""Every example of the documentation runs, and prints what the page says it prints."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import pages
from tests.house.repository import ROOT
from tests.requirements import require_namespaces

PAGES = [path for path in [ROOT / 'README.md', *sorted(ROOT.glob('docs/**/*.md'))] if path.is_file()]
PAGES_WITH_MODEL = [page for page in PAGES if pages.needs_model(page)]
PROGRAMS = sorted(ROOT.glob('examples/*.py'))
FIRST = ROOT / 'examples' / 'weather.py'
"""The first example of the README, which needs a model."""

SERVER = ROOT / 'examples' / 'gradio_chat.py'
"""It does not end; `tests/integrations` starts it."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize('page', PAGES, ids=name)
def test_every_example_of_the_page_is_true(page: Path, tmp_path: Path) -> None:
    if page.stem == 'use-the-e2b-sdk':
        require_namespaces()
    problem = pages.run(page, tmp_path)
    assert problem is None, problem


@pytest.mark.model
@pytest.mark.parametrize('page', PAGES_WITH_MODEL, ids=name)
def test_every_example_of_the_page_is_true_with_the_embedded_model(page: Path, tmp_path: Path) -> None:
    problem = pages.run(page, tmp_path, model='local:')
    assert problem is None, problem


def test_the_first_example_of_the_readme_is_a_file() -> None:
    first = next(step for step in pages.steps(ROOT / 'README.md') if isinstance(step, pages.Example))
    assert FIRST.read_text('utf-8').endswith(f'\n\n{first.code}\n')


@pytest.mark.parametrize('program', [program for program in PROGRAMS if program not in (FIRST, SERVER)], ids=name)
def test_every_example_program_runs(program: Path, tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, '-W', 'error', program],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=pages.SECONDS,
        check=False,
    )
    assert child.returncode == 0, child.stdout + child.stderr


def test_the_first_example_of_the_home_page_fits_the_screen_of_a_phone() -> None:
    first = next(step for step in pages.steps(ROOT / 'docs' / 'index.md') if isinstance(step, pages.Example))
    assert max(map(len, first.code.splitlines())) <= 40
