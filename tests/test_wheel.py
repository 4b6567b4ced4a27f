"""An installed wheel carries the built component: it only has to be compiled, and needs no compiler to be built."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from habilis.core.folders import cache_folder
from habilis.sandbox.wasm import build
from habilis.sandbox.wasm.cache import compiled_component
from tests.house.repository import ROOT

BUILT = 'component.wasm', 'component.key'


def _checkout(target: Path) -> Path:
    """The files of the repository, with a built component where `make wheel` puts it."""
    for name in ('pyproject.toml', 'README.md', 'LICENSE'):
        shutil.copy(ROOT / name, target)
    shutil.copytree(ROOT / 'src', target / 'src', ignore=shutil.ignore_patterns('__pycache__', *BUILT))
    shutil.copytree(ROOT / 'benchmarks', target / 'benchmarks', ignore=shutil.ignore_patterns('__pycache__'))
    folder = target / 'src/habilis/sandbox/wasm'
    shutil.copytree(ROOT / 'src/habilis/sandbox/wasm/component', folder / 'component', dirs_exist_ok=True)
    key = f'{build.source_key()}-{build.builder_key()}'
    compiled_component()  # makes the component if it is not in the cache yet
    built = cache_folder() / 'wasm' / f'{key}.wasm'
    if not built.exists():
        build.build(built)
    shutil.copy(built, folder / 'component.wasm')
    (folder / 'component.key').write_text(key)
    return target


def test_a_wheel_carries_the_component_and_runs_without_the_builder(tmp_path: Path) -> None:
    tree = tmp_path / 'tree'
    tree.mkdir()
    _checkout(tree)
    make = [sys.executable, '-m', 'build', '--wheel', '--no-isolation', '--outdir', str(tmp_path / 'dist'), str(tree)]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (tmp_path / 'dist').glob('*.whl')
    site = tmp_path / 'site'
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    assert (site / 'habilis/forge/seeds/percent_of.md').is_file()
    assert not list(site.rglob('benchmarks'))
    code = (
        "import sys; sys.modules['componentize_py'] = None\n"
        'import habilis; assert "site" in habilis.__file__, habilis.__file__\n'
        'with habilis.Sandbox.create_sync() as sandbox: print(sandbox.run("6 * 7").value)'
    )
    environment = {**os.environ, 'PYTHONPATH': str(site), 'HABILIS_CACHE': str(tmp_path / 'cache')}
    ran = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False, env=environment)
    assert (ran.stdout, ran.returncode) == ('42\n', 0), ran.stderr
    assert 'Building' not in ran.stderr
    assert 'Compiling' in ran.stderr
