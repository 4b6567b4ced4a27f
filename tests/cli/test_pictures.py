"""Pictures of cells: saved under free names, and shown by the terminals that can."""

import base64
import io
import os
import re
from pathlib import Path

import pytest

from habilis.cli import terminal_graphics
from habilis.cli.pictures import picture_folder, run_pictures, show_pictures
from habilis.sandbox.contract import Cell, Display, FileChange
from tests.cli.png_file import png

PNG = png()
PICTURE = Display(mime='image/png', data=PNG)
CELL = Cell(displays=(PICTURE, Display(mime='text/html', data='<b>')))
NULL = os.open(os.devnull, os.O_RDONLY)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path / 'data'))
    return tmp_path


def saved(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Files ----------------------------------------------------------------------------------------------------------------


def test_pictures_are_saved_and_their_paths_are_said(here: Path) -> None:
    said = io.StringIO()
    svg = Display(mime='image/svg+xml', data='<svg/>')
    assert show_pictures(Cell(displays=(PICTURE, svg)), said, here / 'plots') == [
        here / 'plots/figure-1.png',
        here / 'plots/figure-1.svg',
    ]
    assert said.getvalue() == f'plots/figure-1.png (new, {len(PNG)} bytes)\nplots/figure-1.svg (new, 6 bytes)\n'
    assert saved(here / 'plots') == {'figure-1.png': PNG, 'figure-1.svg': b'<svg/>'}


def test_nothing_is_overwritten_and_the_same_picture_is_saved_once(here: Path) -> None:
    (here / 'figure-1.png').write_bytes(b'mine')
    (here / 'figure-2.png').symlink_to('elsewhere')
    os.mkfifo(here / 'figure-3.png')
    for _ in range(2):
        assert show_pictures(CELL, None, here) == [here / 'figure-4.png']
    assert (here / 'figure-1.png').read_bytes() == b'mine'
    assert not (here / 'elsewhere').exists()


@pytest.mark.parametrize(('names', 'is_saved'), [(['a.PNG'], True), (['plots/a.pdf'], True), (['a.csv'], False)])
def test_what_code_has_saved_itself_is_not_saved_again(here: Path, names: list[str], is_saved: bool) -> None:
    files = tuple(FileChange(path=name, size=1, change='new') for name in names)
    assert (show_pictures(Cell(displays=(PICTURE,), files=files), None, here) == []) == is_saved


def test_a_folder_that_cannot_be_written_is_said(here: Path) -> None:
    said = io.StringIO()
    (here / 'file').write_text('')
    assert show_pictures(CELL, said, here / 'file') == []
    assert said.getvalue() == f'a picture could not be saved in {here}/file: File exists\n'


@pytest.mark.parametrize('run', ['..', '../../etc', 'a/b', '.'])
def test_without_a_workspace_the_pictures_of_a_run_are_in_the_data_folder(here: Path, run: str) -> None:
    assert picture_folder('sales', run) == Path('sales')
    assert picture_folder(None, 'run-1') == here / 'data/pictures/run-1'
    assert Path(os.path.abspath(run_pictures(run))).parent == here / 'data/pictures'


# Terminals ------------------------------------------------------------------------------------------------------------


class Screen(io.StringIO):
    """A stream on a terminal of 24 rows and 80 columns, whose descriptor is never asked."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return NULL


def shown_with(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    """What is written to a terminal with this environment."""
    for name in ('TMUX', 'STY', 'ZELLIJ', 'INSIDE_EMACS', 'TERM_PROGRAM', 'KITTY_WINDOW_ID', 'LC_TERMINAL'):
        monkeypatch.delenv(name, raising=False)
    for name, value in {'TERM': 'xterm-256color', **environment}.items():
        monkeypatch.setenv(name, value)
    screen = Screen()
    show_pictures(CELL, screen, Path('plots'))
    text, line = screen.getvalue(), f'plots/figure-1.png (new, {len(PNG)} bytes)\n'
    assert text.endswith(line)
    return text.removesuffix(line)


@pytest.mark.parametrize(
    'environment',
    [{'TERM': 'xterm-kitty'}, {'TERM_PROGRAM': 'ghostty'}, {'KITTY_WINDOW_ID': '1'}],
)
def test_kitty_is_sent_the_file_in_chunks_and_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    monkeypatch.setattr(terminal_graphics, 'KITTY_CHUNK', 40)
    text = shown_with(monkeypatch, **environment)
    chunks = re.findall('\x1b_G([^;]*);([^\x1b]*)\x1b\\\\', text)
    assert text == ''.join(f'\x1b_G{control};{data}\x1b\\' for control, data in chunks) + '\n'
    assert [control for control, _ in chunks] == ['a=T,f=100,q=2,m=1', *['m=1'] * (len(chunks) - 2), 'm=0']
    assert base64.b64decode(''.join(data for _, data in chunks)) == PNG


@pytest.mark.parametrize('environment', [{'TERM_PROGRAM': 'iTerm.app'}, {'LC_TERMINAL': 'iTerm2'}])
def test_iterm2_is_sent_the_file(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    data = base64.b64encode(PNG).decode()
    assert shown_with(monkeypatch, **environment) == (
        f'\x1b]1337;File=inline=1;size={len(PNG)};preserveAspectRatio=1:{data}\a\n'
    )


@pytest.mark.parametrize(
    'environment',
    [
        {'TERM': 'xterm-kitty', 'TMUX': '/tmp/tmux-0/default,1,0'},
        {'TERM': 'screen-256color', 'KITTY_WINDOW_ID': '1'},
        {'TERM': 'tmux-256color', 'TERM_PROGRAM': 'tmux'},
        {'TERM': 'dumb', 'TERM_PROGRAM': 'iTerm.app'},
        {'TERM': 'xterm'},
        {'TERM': ''},
    ],
)
def test_elsewhere_only_the_path_is_said(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    assert shown_with(monkeypatch, **environment) == ''


def test_a_large_picture_is_made_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('TERM', 'xterm-kitty')
    wide = png(1264, 1)
    assert ',c=79,' in terminal_graphics.inline_picture(wide, 'kitty', Screen())
    assert ';width=79;' in terminal_graphics.inline_picture(wide, 'iterm2', Screen())


@pytest.mark.parametrize('data', [b'\x1b[2Jnot a picture', PNG[:20], png() + bytes(1 << 23), png(1 << 12, 1 << 11)])
def test_what_is_no_picture_is_not_sent(data: bytes) -> None:
    assert terminal_graphics.inline_picture(data, 'kitty', Screen()) == ''
