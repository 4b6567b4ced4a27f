"""`habilis run`: files and pictures that a run leaves, and where they are."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.chat import code, script
from tests.cli.png_file import png
from tests.cli.process import habilis
from tests.place import Place
from tests.requirements import missing

PNG = png()
FIGURE = f'class Figure:\n    def _repr_png_(self): return {PNG!r}\n'
SALES = 'region,year,sales\nNorth,2023,100\nNorth,2024,110\nSouth,2023,50\nSouth,2024,80\nEast,2023,70\nEast,2024,71\n'
READ = """\
import pandas as pd
table = pd.read_csv('sales.csv').pivot(index='region', columns='year', values='sales')
table"""
DRAW = """\
growth = table[2024] / table[2023] - 1
growth.plot.bar()
final_answer(f'{growth.idxmax()}: {growth.max():.0%}')"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return habilis('run', *arguments)


def test_files_and_pictures_are_listed_at_the_end(place: Place) -> None:
    (place.folder / 'data').mkdir()
    (place.folder / 'data/old.txt').write_text('1')
    steps = (
        code("open('new.csv', 'w').write('a')\nopen('gone.csv', 'w').write('a')"),
        code(FIGURE + 'display(Figure())\nimport os\nos.remove("gone.csv")\nopen("old.txt", "a").write("2")'),
        code('open("new.csv", "a").write("b")\nfinal_answer(1)'),
    )
    model = script(place.folder, *steps)
    done = run('Work', '--workspace', 'data', '--model', model)
    assert done.stdout == '1\n'
    assert f'\ndata/figure-1.png (new, {len(PNG)} bytes)\n' in done.stderr
    assert 'image/png' not in done.stderr
    listed = 'new file: data/new.csv', 'changed file: data/old.txt', 'new file: data/figure-1.png'
    assert done.stderr.endswith(''.join(f'habilis: {line}\n' for line in listed))
    assert (place.folder / 'data/figure-1.png').read_bytes() == PNG


def test_json_names_the_files_and_quiet_is_quiet(place: Place) -> None:
    model = script(place.folder, code(FIGURE + 'display(Figure())\nfinal_answer(1)'))
    done = run('Work', '--quiet', '--json', '--run-id', 'one', '--model', model)
    [file] = json.loads(done.stdout)['files']
    assert file == {'path': file['path'], 'size': len(PNG), 'change': 'new'}
    assert Path(file['path']).parts[-3:] == ('pictures', 'one', 'figure-1.png')
    assert Path(file['path']).read_bytes() == PNG
    assert 'figure' not in done.stderr
    assert habilis('runs', 'rm', 'one', '--yes').returncode == 0
    assert not Path(file['path']).parent.exists()


def test_a_plot_of_a_table_becomes_a_file_whose_path_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_SANDBOX_SECONDS', '150')  # matplotlib builds its font cache, on whatever machine
    (place.folder / 'sales').mkdir()
    (place.folder / 'sales/sales.csv').write_text(SALES)
    model = script(place.folder, code(READ), code(DRAW))
    packages = 'numpy,pandas,matplotlib'
    done = run('Which region grew most? Draw it.', '--packages', packages, '--workspace', 'sales', '--model', model)
    if 'no network' in done.stderr:
        missing('registry')
    assert (done.returncode, done.stdout) == (0, 'South: 60%\n')
    assert done.stderr.count('habilis: sandbox: process, because the packages need native code\n') == 1
    assert '\nNorth    100   110\n' in done.stderr, 'a table is shown as text'
    assert 'text/html' not in done.stderr
    assert done.stderr.endswith('habilis: new file: sales/figure-1.png\n')
    assert (place.folder / 'sales/figure-1.png').read_bytes().startswith(b'\x89PNG')
