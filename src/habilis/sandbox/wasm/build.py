"""Builds the component: CPython, the standard library and the guest kernel in one WebAssembly file.

python -m habilis.sandbox.wasm.build FILE
"""

import hashlib
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.sandbox.host.guest_folder import GUEST_FILES, PACKAGE

HERE = Path(__file__).parent
BUNDLED = HERE / 'component.wasm'
"""The path of the built component in a wheel."""

TESTED = '0.25.1'
"""The version of componentize-py whose components are known to the linker."""


def source_key() -> str:
    """A hash of all sources of the component."""
    digest = hashlib.sha256()
    for path in [
        *(PACKAGE / name for name in GUEST_FILES),
        *sorted((HERE / 'component').glob('*.*')),
        HERE / 'immortal_objects.py',
        *sorted((HERE / 'linking').glob('*.py')),
    ]:
        digest.update(path.name.encode() + b'\0' + path.read_bytes() + b'\0')
    return digest.hexdigest()[:24]


def builder_key() -> str:
    """The versions of the builder and of the included packages."""
    return '-'.join(f'{name}-{_version(name)}' for name in ('componentize-py', 'cloudpickle', 'tzdata'))


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return 'none'


def can_build() -> bool:
    """Whether componentize-py is installed."""
    return importlib.util.find_spec('componentize_py') is not None


def build(target: Path) -> None:
    """Build the component. Takes about half a minute."""
    from habilis.sandbox.wasm.immortal_objects import immortalize  # not imported where the component is in the cache

    if not can_build():
        msg = 'componentize-py is needed to build the sandbox from source: pip install "habilis[build]"'
        raise BackendNotFound(msg)
    with tempfile.TemporaryDirectory(prefix='habilis-build-') as scratch:
        tree = Path(scratch) / 'tree'
        _copy_sources(tree)
        _componentize(tree, Path(scratch) / 'component.wasm')
        target.write_bytes(immortalize(linked((Path(scratch) / 'component.wasm').read_bytes())))


def linked(component: bytes) -> bytes:
    """The component with its libraries linked; an error names the version of the builder that works."""
    from habilis.sandbox.wasm.linking.binary import Unlinkable
    from habilis.sandbox.wasm.linking.linker import link

    try:
        return link(component)
    except Unlinkable as error:
        msg = (
            f'the sandbox that componentize-py {_version("componentize-py")} has built cannot be linked: {error}. '
            f'It is tested with {TESTED}: pip install componentize-py=={TESTED}'
        )
        raise SandboxError(msg) from error


def _copy_sources(tree: Path) -> None:
    """Copy the modules of the component, with their import names on the host."""
    for name in GUEST_FILES:
        path = tree / 'habilis' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, path)
    for folder in ('habilis', 'habilis/core', 'habilis/sandbox'):
        (tree / folder / '__init__.py').touch()  # empty: those of the host import too much
    for path in (HERE / 'component').glob('*.py'):
        shutil.copy(path, tree)
    for package in ('cloudpickle', 'tzdata'):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:  # without `tzdata`, `zoneinfo` knows only UTC
            skipped = shutil.ignore_patterns('__pycache__')
            shutil.copytree(Path(spec.origin).parent, tree / package, ignore=skipped)


def _componentize(tree: Path, target: Path) -> None:
    command = [sys.executable, '-c', 'import componentize_py; componentize_py.script()']
    command += ['-d', str(HERE / 'component' / 'world.wit'), '-w', 'sandbox', 'componentize', 'app']
    command += ['-p', str(tree), '-o', str(target)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not target.exists():
        msg = f'the sandbox could not be built; output of componentize-py:\n{(done.stderr or done.stdout)[-3000:]}'
        raise SandboxError(msg)


def main() -> int:
    """Build to the file named on the command line, and write its key beside it, as in a wheel."""
    if len(sys.argv) != 2 or sys.argv[1].startswith('-'):
        print(__doc__)
        return 2
    target = Path(sys.argv[1])
    build(target)
    target.with_suffix('.key').write_text(f'{source_key()}-{builder_key()}\n')
    print(f'{target}: {target.stat().st_size / 1e6:.1f} MB')
    return 0


if __name__ == '__main__':
    sys.exit(main())
