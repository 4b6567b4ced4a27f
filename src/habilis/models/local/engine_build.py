"""Prebuilt llama.cpp: which build fits this machine, and its installation. The list is `engines.toml`.

The Python package `xllamacpp` was compiled for the oldest processors. These builds have code for each generation and
choose when they are loaded, which makes them two to three times as fast.
"""

import asyncio
import contextlib
import os
import platform
import sys
import time
import tomllib
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from habilis.core.errors import DownloadError
from habilis.core.folders import cache_folder
from habilis.models.local import npm
from habilis.models.local.catalogue import HubSource
from habilis.models.local.download import OnMessage, run_on_thread
from habilis.models.local.npm import NpmInstallation, NpmPackage
from habilis.models.local.partial_file import Progress

RETRY_SECONDS = 86400
LIBRARIES = r'package/bins/[^/]+/((?:lib)?(?:ggml|llama(?!-common))[\w.-]*\.(?:so|dylib|dll))'
"""The files of a package that are used."""

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


def build_for_this_machine(registry: str = npm.NOWHERE) -> NpmPackage | None:
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
    return NpmPackage(
        name='llama.cpp',
        file=f'{found.platform}-{known.version}.tgz',
        bytes=found.bytes,
        licence=known.licence,
        sha256=found.sha256,
        sources=(HubSource(url=f'{registry}/{package}/-/{found.platform}-{known.version}.tgz'),),
        wanted=LIBRARIES,
        unpacked=f'llama.cpp-{known.llama_cpp}-{found.platform}-{found.sha256[:8]}',
    )


def installed() -> Path | None:
    """Folder with the libraries, if they are installed."""
    build = build_for_this_machine()
    return build.installed if build else None


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
        build = build_for_this_machine(await asyncio.to_thread(npm.registry))
        assert build is not None
        return await run_on_thread(NpmInstallation(entry=build, on_progress=on_progress, on_message=on_message))
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
    return os.environ.get('HABILIS_ENGINE', 'prebuilt') != 'prebuilt' or npm.is_offline()


@cache
def _known() -> _Builds:
    return _Builds.model_validate(tomllib.loads(Path(__file__).with_name('engines.toml').read_text('utf-8')))
