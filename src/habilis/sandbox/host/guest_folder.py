"""The code of the guest as a folder, for backends that start it in a Python of their own."""

import compileall
import functools
import hashlib
import importlib.util
import sys
from pathlib import Path

from habilis.core.folders import cache_folder
from habilis.sandbox.files.cache_entry import new_entry

PACKAGE = Path(__file__).parents[2]
GUEST_FILES = (
    'core/codec.py',
    *sorted(f'sandbox/guest/{path.name}' for path in (PACKAGE / 'sandbox/guest').glob('*.py')),
)
"""The files of this package that run inside."""


def guest_folder(*more: str) -> Path:
    """A folder for `sys.path`, with the guest, more files of this package, and cloudpickle; made once, in the cache."""
    key, files = _contents(more)
    folder = cache_folder() / 'guests' / key
    if not folder.is_dir():
        _make(files, folder)
    return folder


@functools.cache
def _contents(more: tuple[str, ...]) -> tuple[str, dict[str, bytes]]:
    """The files of the folder by their path in this package, and a hash of them."""
    files = {name: (PACKAGE / name).read_bytes() for name in (*GUEST_FILES, *more)}
    spec = importlib.util.find_spec('cloudpickle')
    assert spec is not None
    assert spec.origin is not None
    for path in sorted(Path(spec.origin).parent.glob('*.py')):
        files[f'../cloudpickle/{path.name}'] = path.read_bytes()
    digest = hashlib.sha256(sys.version.encode())
    for name, content in files.items():
        digest.update(name.encode() + b'\0' + content + b'\0')
    return digest.hexdigest()[:24], files


def _make(files: dict[str, bytes], folder: Path) -> None:
    with new_entry(folder) as scratch:
        for name, content in files.items():
            path = (scratch / 'habilis' / name).resolve()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for name in {parent for path in scratch.rglob('*.py') for parent in path.relative_to(scratch).parents}:
            if name.parts and not (scratch / name / '__init__.py').exists():
                (scratch / name / '__init__.py').touch()  # empty: those of the host import too much
        compileall.compile_dir(scratch, quiet=1, stripdir=str(scratch))
        for path in (scratch, *scratch.rglob('*')):  # another user may run it
            path.chmod(0o755 if path.is_dir() else 0o644)
