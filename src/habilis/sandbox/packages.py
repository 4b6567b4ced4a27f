"""Pure-Python packages for the inside: fetched on the host with pip, kept in the cache, mounted read-only."""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from habilis.core.errors import PackageError
from habilis.core.places import cache_folder

GUEST_PYTHON = '3.14'
_NETWORK_TROUBLE = re.compile(
    r'NewConnectionError|Temporary failure|Connection refused|timed out|Network is unreachable'
)


def package_folder(packages: list[str]) -> Path:
    """A folder that holds the packages: requirements, wheels or folders. A single folder is used as it is."""
    if len(packages) == 1 and Path(packages[0]).expanduser().is_dir() and not _is_project(Path(packages[0])):
        return Path(packages[0]).expanduser().resolve()
    wanted = [_identify(package) for package in packages]
    key = hashlib.sha256('\n'.join([GUEST_PYTHON, *sorted(wanted)]).encode()).hexdigest()[:24]
    folder = cache_folder() / 'packages' / key
    if not folder.is_dir():
        _install(packages, folder)
    return folder


def _is_project(folder: Path) -> bool:
    return (folder / 'pyproject.toml').exists() or (folder / 'setup.py').exists()


def _identify(package: str) -> str:
    """What must be the same for the cached folder to be the same."""
    path = Path(package).expanduser()
    if path.is_file():
        return f'{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}'
    if path.is_dir():
        files = sorted(file for file in path.rglob('*') if file.is_file())
        return f'{path.resolve()} ' + ' '.join(f'{file}:{file.stat().st_mtime_ns}' for file in files)
    if package.endswith('.whl') or os.sep in package:
        msg = f'there is no file {package!r}'
        raise PackageError(msg)
    return package.strip()


def _install(packages: list[str], folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix='.installing-'))
    try:
        plain = [
            package for package in packages if Path(package).expanduser().is_dir() and not _is_project(Path(package))
        ]
        rest = [package for package in packages if package not in plain]
        if rest:
            _pip(rest, scratch)
        for package in plain:
            shutil.copytree(Path(package).expanduser(), scratch, dirs_exist_ok=True)
        native = [str(path.relative_to(scratch)) for path in scratch.rglob('*') if path.suffix in ('.so', '.pyd')]
        if native:
            msg = f'{", ".join(packages)}: not pure Python ({native[0]}); use a sandbox backend with native packages'
            raise PackageError(msg)
        scratch.chmod(0o755)
        with contextlib.suppress(OSError):  # another process was first; its folder is as good
            scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _pip(packages: list[str], target: Path) -> None:
    command = [sys.executable, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-input']
    command += ['--target', str(target), '--only-binary', ':all:', '--no-compile', '--python-version', GUEST_PYTHON]
    command += ['--implementation', 'py', '--abi', 'none', '--platform', 'any', '--', *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    if _NETWORK_TROUBLE.search(done.stderr):
        msg = f'no network to fetch {", ".join(packages)}; give a wheel or a folder instead, or try again later'
        raise PackageError(msg)
    lines = [line for line in done.stderr.splitlines() if line.startswith('ERROR')] or done.stderr.splitlines()[-3:]
    msg = f'cannot get {", ".join(packages)} as pure-Python wheels:\n' + '\n'.join(lines[:6])
    raise PackageError(msg)
