"""Prebuilt llama.cpp: which build fits this machine, and its installation. The list is `engines.toml`.

The Python package `xllamacpp` was compiled for the oldest processors. These builds have code for each generation and
choose when they are loaded, which makes them two to three times as fast.
"""

import asyncio
import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from habilis.core.errors import DownloadError
from habilis.core.folders import cache_folder
from habilis.models.local.catalogue import Artifact, HubSource
from habilis.models.local.download import Installation, OnMessage, run_on_thread
from habilis.models.local.partial_file import Progress

MAX_BYTES = 200_000_000
"""Maximum size of the unpacked libraries."""

RETRY_SECONDS = 86400
NPM_SECONDS = 20
NOWHERE = 'https://npm.invalid'
"""Stands for a registry that is not needed, or not known yet."""

_LIBRARY = re.compile(r'package/bins/[^/]+/((?:lib)?(?:ggml|llama)[\w.-]*\.(?:so|dylib|dll))')
_UNUSED = re.compile(r'llama-common')
_SYSTEMS = {'linux': 'linux', 'darwin': 'mac', 'win32': 'win'}
_MACHINES = {'aarch64': 'arm64', 'arm64': 'arm64', 'x86_64': 'x64', 'amd64': 'x64'}


class _Build(BaseModel):
    model_config = ConfigDict(frozen=True, extra='forbid')

    platform: str
    bytes: int
    sha256: str


class _Builds(BaseModel):
    model_config = ConfigDict(frozen=True, extra='forbid')

    scope: str
    version: str
    llama_cpp: str
    licence: str
    build: tuple[_Build, ...]


class EngineBuild(Artifact):
    """The archive of a build. Installed, it is a folder of libraries."""

    libraries: str
    """Name of that folder."""

    @property
    def folder(self) -> Path:
        """Folder of all builds."""
        return cache_folder() / 'engines'


class _EngineInstallation(Installation):
    """Unpacks the verified archive."""

    def find_installed(self) -> Path | None:
        return installed()

    def finish(self, verified: Path) -> Path:
        build = self.entry
        assert isinstance(build, EngineBuild)
        target = build.folder / build.libraries
        draft = Path(tempfile.mkdtemp(dir=build.folder, prefix='.unpacking-'))
        try:
            unpack(verified, draft)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            verified.unlink(missing_ok=True)
        return target


def build_for_this_machine(registry: str = NOWHERE) -> EngineBuild | None:
    """The build for this system and processor, if there is one. `registry` is the address to fetch it from."""
    known = _known()
    system, machine = _SYSTEMS.get(sys.platform), _MACHINES.get(platform.machine().lower())
    if system == 'linux' and platform.libc_ver()[0] != 'glibc':  # the builds do not run with musl
        return None
    names = (f'{system}-{machine}', f'{system}-{machine}-metal')
    found = next((build for build in known.build if build.platform in names), None)
    if found is None:
        return None
    package = f'{known.scope}/{found.platform}'
    return EngineBuild(
        name='llama.cpp',
        file=f'{found.platform}-{known.version}.tgz',
        bytes=found.bytes,
        licence=known.licence,
        sha256=found.sha256,
        sources=(HubSource(url=f'{registry}/{package}/-/{found.platform}-{known.version}.tgz'),),
        libraries=f'llama.cpp-{known.llama_cpp}-{found.platform}-{found.sha256[:8]}',
    )


def installed() -> Path | None:
    """Folder with the libraries, if they are installed."""
    build = build_for_this_machine()
    path = build.folder / build.libraries if build else None
    return path if path is not None and path.is_dir() else None


def why_missing() -> str:
    """Why there are no libraries, and what to do."""
    if build_for_this_machine() is None:
        return f'there is no prebuilt llama.cpp for {sys.platform} on {platform.machine()}'
    return 'the prebuilt llama.cpp is not installed; run `habilis models install`'


async def ensure_engine(*, on_progress: Progress | None = None, on_message: OnMessage | None = None) -> Path | None:
    """Install the build for this machine, unless that has just failed."""
    if (path := installed()) or _has_failed_lately():
        return path
    return await install_engine(on_progress=on_progress, on_message=on_message)


async def install_engine(*, on_progress: Progress | None = None, on_message: OnMessage | None = None) -> Path | None:
    """Install the build for this machine, if there is one. A failure is a message, as another backend works too."""
    if build_for_this_machine() is None or _is_unwanted():
        return installed()
    try:
        build = build_for_this_machine(await asyncio.to_thread(_registry))
        assert build is not None
        return await run_on_thread(_EngineInstallation(entry=build, on_progress=on_progress, on_message=on_message))
    except DownloadError as error:
        with contextlib.suppress(OSError):
            _failure_note().touch()
        if on_message is not None:
            on_message(f'the faster llama.cpp was not installed, so xllamacpp is used: {error}')
        return None


def _failure_note() -> Path:
    return cache_folder() / 'engines' / '.failed'


def _has_failed_lately() -> bool:
    """Whether an installation has failed within a day: without a network, not every command should wait for it."""
    try:
        return time.time() - _failure_note().stat().st_mtime < RETRY_SECONDS
    except OSError:
        return False


def _is_unwanted() -> bool:
    """Whether another backend was chosen, or npm is set to work offline."""
    return os.environ.get('HABILIS_ENGINE', 'prebuilt') != 'prebuilt' or _npm_setting('offline') == 'true'


def unpack(archive: Path, folder: Path) -> None:
    """Write the libraries of a verified package into a folder. Paths inside the archive are not used."""
    total = 0
    try:
        with tarfile.open(archive, 'r:gz') as members:
            for member in members:
                found = _LIBRARY.fullmatch(member.name)
                if not (found and member.isreg()) or _UNUSED.search(member.name):
                    continue
                total += member.size
                source = members.extractfile(member)
                if source is None or total > MAX_BYTES:
                    msg = f'{archive.name} is not a package of llama.cpp'
                    raise DownloadError(msg)
                with (folder / found[1]).open('wb') as target:
                    shutil.copyfileobj(source, target)
    except (tarfile.TarError, EOFError) as error:
        msg = f'{archive.name} is damaged ({error})'
        raise DownloadError(msg) from error


@cache
def _known() -> _Builds:
    return _Builds.model_validate(tomllib.loads(Path(__file__).with_name('engines.toml').read_text('utf-8')))


def _registry() -> str:
    """The npm registry of this machine: as npm is set, or as npm itself says. Raises `DownloadError`."""
    found = _npm_setting('registry')
    if found is None and (npm := shutil.which('npm')) is not None:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            asked = [npm, 'config', 'get', 'registry']
            found = subprocess.run(
                asked, capture_output=True, text=True, timeout=NPM_SECONDS, check=True
            ).stdout.strip()
    if not found or not found.startswith('http'):
        msg = 'no npm registry is known; install npm, or set NPM_CONFIG_REGISTRY'
        raise DownloadError(msg)
    return found.rstrip('/')


def _npm_setting(name: str) -> str | None:
    """A setting of npm, from where npm itself reads it: the environment, then the user's file."""
    for variable, value in os.environ.items():
        if variable.lower() == f'npm_config_{name}' and value:
            return value
    try:
        lines = (Path.home() / '.npmrc').read_text('utf-8').splitlines()
    except (OSError, UnicodeDecodeError, RuntimeError):
        return None
    found = (re.fullmatch(rf'\s*{name}\s*=\s*(\S+)\s*', line) for line in lines)
    return next((match[1] for match in found if match), None)
