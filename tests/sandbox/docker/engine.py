"""A real Docker engine and an image for the tests.

The image is made of the Python that runs the tests: its standard library, a shell, and the libraries they need. That
takes seconds and needs no registry. It is kept under a name, so later runs find it.
"""

import contextlib
import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Generator, Iterable
from functools import cache
from pathlib import Path

from habilis.sandbox import backends
from habilis.sandbox.docker.backend import DockerBackend
from tests.requirements import missing, require

BACKEND = 'docker-test'
_USERS = 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n'


def docker(*arguments: str) -> str:
    """Output of a docker command."""
    return subprocess.run(['docker', *arguments], check=True, capture_output=True, text=True).stdout.strip()


@cache
def test_image() -> str:
    """Name of the image; made if it is not there."""
    require('docker')
    try:
        docker('version')
    except subprocess.CalledProcessError:
        missing('docker')
    if given := os.environ.get('HABILIS_TEST_IMAGE'):  # to test with another Python
        return given
    name = f'habilis-test:{hashlib.sha256(f"1 {sys.version} {sys.base_prefix}".encode()).hexdigest()[:12]}'
    if not docker('image', 'ls', '-q', name):
        subprocess.run(['docker', 'import', '-', name], input=_archive(), check=True, stdout=subprocess.DEVNULL)
    return name


test_image.__test__ = False  # type: ignore[attr-defined]


@contextlib.contextmanager
def registered() -> Generator[None]:
    """The backend with the image of the tests, by the name `BACKEND`."""
    image = test_image()
    backends.register(BACKEND, lambda: DockerBackend(image))
    try:
        yield
    finally:
        backends.unregister(BACKEND)


def _archive() -> bytes:
    program = Path(getattr(sys, '_base_executable', sys.executable)).resolve()
    library = Path(sysconfig.get_path('stdlib')).resolve()
    native = [*library.glob('lib-dynload/*.so'), program, Path('/bin/sh').resolve()]
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w') as archive:
        archive.add(library, filter=_standard_library)
        for file in {program, *_libraries(native)}:
            archive.add(file.resolve(), str(file))
        archive.add(Path('/bin/sh').resolve(), '/bin/sh')
        _add(archive, '/usr/bin/python3', b'', link=str(program))
        _add(archive, '/etc/passwd', _USERS.encode())
        _add(archive, '/etc/group', b'root:x:0:\nnogroup:x:65534:\n')
    return data.getvalue()


def _standard_library(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = ('/test', '/tests', '/site-packages', '/dist-packages', '/idlelib', '/tkinter', '/lib2to3')
    entry.mode |= 0o555 if entry.isdir() else 0o444
    return None if entry.name.endswith(left_out) or '/config-' in entry.name else entry


def _libraries(files: Iterable[Path]) -> set[Path]:
    """The shared libraries of programs, by the names under which the linker finds them."""
    said = subprocess.run(['ldd', *map(str, files)], capture_output=True, text=True, check=False).stdout
    return {Path(name) for name in re.findall(r'(?:=> |^\s+)(/\S+)', said, re.MULTILINE)}


def _add(archive: tarfile.TarFile, name: str, data: bytes, link: str = '') -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size = 0o755, len(data)
    if link:
        entry.type, entry.linkname = tarfile.SYMTYPE, link
    archive.addfile(entry, io.BytesIO(data))
