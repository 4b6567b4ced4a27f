"""The source files that a guest needs, to be carried into the place where it runs."""

import hashlib
import importlib.util
import shutil
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
GUEST_FILES = (
    'core/codec.py',
    *sorted(f'sandbox/guest/{path.name}' for path in (PACKAGE / 'sandbox/guest').glob('*.py')),
)
"""The files of this package that run inside."""


def copy_guest(tree: Path, packages: Iterable[str] = ('cloudpickle',)) -> None:
    """Copy the guest and the packages that it uses to a folder, with their import names on the host."""
    for name in GUEST_FILES:
        path = tree / 'habilis' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, path)
    for folder in ('habilis', 'habilis/core', 'habilis/sandbox'):
        (tree / folder / '__init__.py').touch()  # empty: those of the host import too much
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            skipped = shutil.ignore_patterns('__pycache__')
            shutil.copytree(Path(spec.origin).parent, tree / package, ignore=skipped)


def hash_files(paths: Iterable[Path]) -> str:
    """A hash of the names and contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b'\0' + path.read_bytes() + b'\0')
    return digest.hexdigest()[:24]
