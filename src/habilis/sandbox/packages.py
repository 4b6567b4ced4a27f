"""Pure-Python packages for the inside: fetched on the host with pip, kept in the cache, mounted read-only."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from habilis.core.errors import PackageError
from habilis.core.folders import cache_folder

GUEST_PYTHON = '3.14'
_NETWORK_TROUBLE = re.compile(
    r'NewConnectionError|Temporary failure|Connection refused|timed out|Network is unreachable'
)


def package_folder(packages: list[str]) -> Path:
    """A folder that holds the packages: requirements, wheels or folders. A single folder is used as it is."""
    if not all(package.strip() for package in packages):
        msg = 'a package needs a name; an empty one was given'
        raise PackageError(msg)
    for package in packages:
        _refuse_source(package.strip())
    if len(packages) == 1 and _is_plain_folder(packages[0]):
        return Path(packages[0]).expanduser().resolve()
    wanted = [_identify(package) for package in packages]
    key = hashlib.sha256('\n'.join([GUEST_PYTHON, *sorted(wanted)]).encode()).hexdigest()[:24]
    folder = cache_folder() / 'packages' / key
    if not folder.is_dir():
        _install(packages, folder)
    return folder


def _refuse_source(package: str) -> None:
    """To install a source package is to run its code on the host, which is what a sandbox is there to prevent."""
    path = Path(package).expanduser()
    is_project = path.is_dir() and not _is_plain_folder(package)
    is_archive = path.is_file() and path.suffix != '.whl'
    is_source_address = '://' in package and not re.search(r'\.whl(?:[#?;\s]|$)', package)
    if is_project or is_archive or is_source_address:
        msg = f'{package} is source; building it would run its code on this machine. Give a wheel (see pip wheel)'
        raise PackageError(msg)


def _is_plain_folder(package: str) -> bool:
    """A folder with modules in it, and not a project that pip would build."""
    folder = Path(package).expanduser()
    return folder.is_dir() and not (folder / 'pyproject.toml').exists() and not (folder / 'setup.py').exists()


def _identify(package: str) -> str:
    """What must be the same for the cached folder to be the same."""
    path = Path(package).expanduser()
    if path.is_file():
        return f'{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}'
    if path.is_dir():
        files = sorted(file for file in path.rglob('*') if file.is_file())
        return f'{path.resolve()} ' + ' '.join(f'{file}:{file.stat().st_mtime_ns}' for file in files)
    if '://' not in package and (package.endswith('.whl') or os.sep in package):
        msg = f'there is no file {package!r}'
        raise PackageError(msg)
    return package.strip()


def _install(packages: list[str], folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix='.installing-'))
    try:
        plain = [package for package in packages if _is_plain_folder(package)]
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
        _put(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _put(scratch: Path, folder: Path) -> None:
    try:
        scratch.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was first; its folder is as good
            raise


def _pip(packages: list[str], target: Path) -> None:
    command = [sys.executable, '-m', 'pip', 'install', '-vv', '--disable-pip-version-check', '--no-input']
    command += ['--target', str(target), '--only-binary', ':all:', '--no-compile', '--python-version', GUEST_PYTHON]
    command += ['--implementation', 'py', '--abi', 'none', '--platform', 'any', '--', *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PackageError(_explain(', '.join(packages), done.stdout + done.stderr))


def _explain(wanted: str, said: str) -> str:
    """What went wrong, from all that pip said of it."""
    missing = re.search(r'No matching distribution found for ([\w.-]+)', said)
    name = missing[1] if missing else wanted
    file = re.sub(r'[-_.]+', '[-_.]+', name)
    if missing and re.search(rf"none of the wheel's tags.*/{file}-", said, re.IGNORECASE):
        return f'{name} is not pure Python, so it cannot run here; use a sandbox backend with native packages'
    if _NETWORK_TROUBLE.search(said):
        return f'no network to fetch {wanted}; give a wheel or a folder instead, or try again later'
    if missing and 'from versions: none' in said:
        if f'No sources permitted for {name}' in said:
            return f'{name} is published only as source; build a wheel of it (pip wheel {name}) and give its path'
        return f'there is no package called {name!r}'
    lines = [line for line in said.splitlines() if line.startswith('ERROR')] or said.splitlines()[-3:]
    return f'cannot get {wanted}:\n' + '\n'.join(lines[:6])
