"""Packages for the inside: fetched on the host with uv or pip, kept in the cache, mounted read-only."""

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from habilis.core.errors import PackageError
from habilis.core.folders import cache_folder
from habilis.sandbox.contract import WASM_PYTHON, PythonTarget
from habilis.sandbox.files.cache_entry import new_entry
from habilis.sandbox.files.file_lock import file_lock
from habilis.sandbox.packages.failures import NeedsNativeCode, explain, native_advice
from habilis.sandbox.progress import progress

PROGRESS_AFTER = 2.0
"""Seconds after which an installation shows that it is running."""


def merge(packages: Sequence[str], more: Iterable[str], *, replaces: bool) -> list[str]:
    """The packages and more of them, each name once.

    A requirement of a name that is there already takes its place if it `replaces`, and says anything about the version.
    """
    merged = list(packages)
    for package in more:
        requirement = _requirement(package)
        same = [
            index
            for index, known in enumerate(merged)
            if known == package or (requirement and _name(_requirement(known)) == _name(requirement))
        ]
        if not same:
            merged.append(package)
        elif replaces and requirement and (requirement.specifier or requirement.url):
            merged[same[0]] = package
    return merged


def pins(packages: Sequence[str], folder: Path) -> tuple[str, ...]:
    """The requirements among the packages, each with the version that is in the folder: they can be installed anywhere,
    unlike wheels, folders and addresses."""
    found: list[str] = []
    installed = _versions(folder, folder.stat().st_mtime_ns)
    for package in packages:
        requirement = _requirement(package)
        if requirement and not requirement.url and (version := installed.get(_name(requirement) or '')):
            extras = f'[{",".join(sorted(requirement.extras))}]' if requirement.extras else ''
            found.append(f'{requirement.name}{extras}=={version}')
    return tuple(found)


@functools.lru_cache(64)
def _versions(folder: Path, changed: int) -> dict[str, str]:
    """The versions of the packages in a folder. `changed` is when it was changed."""
    return {_normalized(dist.name): dist.version for dist in importlib.metadata.distributions(path=[str(folder)])}


def is_pin(package: str) -> bool:
    """Whether this is a requirement of one version, as `pins` returns them: no path, no address, no option."""
    requirement = _requirement(package)
    return bool(
        requirement
        and not requirement.url
        and not requirement.marker
        and [specifier.operator for specifier in requirement.specifier] == ['==']
    )


def _requirement(package: str) -> Requirement | None:
    """The requirement that a package is; None for a wheel or folder."""
    if os.sep in package.partition('@')[0] or package.endswith('.whl') or _is_plain_folder(package):
        return None
    with contextlib.suppress(InvalidRequirement):
        return Requirement(package)
    return None


def _name(requirement: Requirement | None) -> str | None:
    return None if requirement is None else _normalized(requirement.name)


def _normalized(name: str) -> str:
    return re.sub(r'[-_.]+', '-', name).lower()


def native_reason(packages: Sequence[str]) -> str:
    """Why `wasm` cannot run the packages; empty if it can, and then they are installed.

    The cache remembers the reason: to ask the registry again would take seconds.
    """
    _check(packages)
    known = _cached(packages, WASM_PYTHON).with_suffix('.native')
    try:
        return known.read_text(encoding='utf-8')
    except OSError:
        pass
    try:
        package_folder(packages, doing='Looking up')
    except NeedsNativeCode as error:
        with contextlib.suppress(OSError):
            known.write_text(str(error), encoding='utf-8')
        return str(error)
    return ''


def package_folder(packages: Sequence[str], python: PythonTarget = WASM_PYTHON, *, doing: str = 'Installing') -> Path:
    """A folder that holds the packages: requirements, wheels or folders. A single folder is used as it is."""
    _check(packages)
    if len(packages) == 1 and _is_plain_folder(packages[0]):
        return Path(packages[0]).expanduser().resolve()
    folder = _cached(packages, python)
    if not folder.is_dir():
        _install_once(packages, folder, python, doing)
    return folder


def _check(packages: Sequence[str]) -> None:
    if not all(package.strip() for package in packages):
        msg = 'a package needs a name; an empty one was given'
        raise PackageError(msg)
    for package in packages:
        _refuse_source(package.strip())


def _cached(packages: Sequence[str], python: PythonTarget) -> Path:
    wanted = [_identify(package) for package in packages]
    key = hashlib.sha256('\n'.join([python.version, *python.platforms[:1], *sorted(wanted)]).encode()).hexdigest()[:24]
    return cache_folder() / 'packages' / key


def _install_once(packages: Sequence[str], folder: Path, python: PythonTarget, doing: str) -> None:
    locks = cache_folder() / 'package-locks'
    locks.mkdir(parents=True, exist_ok=True, mode=0o700)
    what = f'{doing} {", ".join(packages)} for the sandbox (once)'
    with progress(what, after=PROGRESS_AFTER), file_lock(locks / folder.name):
        if not folder.is_dir():
            _install(packages, folder, python)


def _refuse_source(package: str) -> None:
    """To install a source package is to run its code on the host, which is what a sandbox is there to prevent."""
    path = Path(package).expanduser()
    if _is_bare_link(path):
        msg = f'{package} is a link in the current folder; give the path of the folder that you mean (./{package})'
        raise PackageError(msg)
    is_project = path.is_dir() and not _is_plain_folder(package)
    is_archive = path.is_file() and path.suffix != '.whl'
    is_source_address = '://' in package and not re.search(r'\.whl(?:[#?;\s]|$)', package)
    if is_project or is_archive or is_source_address:
        msg = f'{package} is source; building it would run its code on this machine. Give a wheel (see pip wheel)'
        raise PackageError(msg)


def _is_plain_folder(package: str) -> bool:
    """A folder with modules in it, and not a project that pip would build."""
    folder = Path(package).expanduser()
    if _is_bare_link(folder):
        return False
    return folder.is_dir() and not (folder / 'pyproject.toml').exists() and not (folder / 'setup.py').exists()


def _is_bare_link(path: Path) -> bool:
    """A bare name may be that of a link which a sandbox has made, if its workspace is the current folder."""
    return len(path.parts) == 1 and path.is_symlink()


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


def _install(packages: Sequence[str], folder: Path, python: PythonTarget) -> None:
    with new_entry(folder) as scratch:
        plain = [package for package in packages if _is_plain_folder(package)]
        rest = [package for package in packages if package not in plain]
        if rest:
            _fetch(rest, scratch, python)
        for package in plain:
            # Links stay links, which lead nowhere inside; to follow them would copy files from outside of the folder.
            shutil.copytree(Path(package).expanduser(), scratch, symlinks=True, dirs_exist_ok=True)
        if not python.platforms:
            _refuse_native_code(packages, scratch)
        scratch.chmod(0o755)


def _refuse_native_code(packages: Sequence[str], folder: Path) -> None:
    native = [str(path.relative_to(folder)) for path in folder.rglob('*') if path.suffix in ('.so', '.pyd')]
    if native:
        msg = f'{", ".join(packages)}: not pure Python ({native[0]}); {native_advice(packages[0])}'
        raise NeedsNativeCode(msg)


def _fetch(packages: list[str], target: Path, python: PythonTarget) -> None:
    if python.platforms and _uv(packages, target, python):
        return
    command = [sys.executable, '-m', 'pip', 'install', '-vv', '--disable-pip-version-check', '--no-input']
    command += ['--target', str(target), '--only-binary', ':all:', *_pip_target(python), '--', *packages]
    # Warnings as errors are for the user's own program: pip itself warns.
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONWARNINGS'}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise explain(packages, done.stdout + done.stderr, python)


def _pip_target(python: PythonTarget) -> list[str]:
    options = ['--python-version', python.version]
    if not _is_own(python):  # another version could not read the bytecode
        options.append('--no-compile')
    if not python.platforms:
        return [*options, '--implementation', 'py', '--abi', 'none', '--platform', 'any']
    options += ['--implementation', 'cp']
    for abi in (f'cp{python.version.replace(".", "")}', 'abi3', 'none'):
        options += ['--abi', abi]
    for platform in python.platforms:
        options += ['--platform', platform]
    return options


def _is_own(python: PythonTarget) -> bool:
    return bool(python.platforms) and python.version == f'{sys.version_info.major}.{sys.version_info.minor}'


def _uv(packages: list[str], target: Path, python: PythonTarget) -> bool:
    """Install with uv, which is faster. False where it cannot or fails: pip then installs, or says why not."""
    program = shutil.which('uv')
    if program is None or not _is_own(python) or _pip_is_configured():
        return False
    command = [program, 'pip', 'install', '--quiet', '--target', str(target), '--python', sys.executable]
    command += ['--only-binary', ':all:', '--compile-bytecode', '--', *packages]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return True
    for leftover in target.iterdir():
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    return False


def _pip_is_configured() -> bool:
    """Whether pip takes packages from elsewhere than its default registry: uv does not read these settings."""
    variables = ('PIP_INDEX_URL', 'PIP_EXTRA_INDEX_URL', 'PIP_FIND_LINKS', 'PIP_NO_INDEX', 'PIP_CONFIG_FILE')
    home = Path.home()
    files = (Path('/etc/pip.conf'), home / '.config/pip/pip.conf', home / '.pip/pip.conf', Path(sys.prefix, 'pip.conf'))
    return any(name in os.environ for name in variables) or any(file.exists() for file in files)
