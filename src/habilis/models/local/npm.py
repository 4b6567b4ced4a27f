"""Files in packages of the npm registry: fetched without npm or Node, verified by hash, and never run.

The registry is the one that npm on this machine uses, or `NPM_CONFIG_REGISTRY`.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from habilis.core.errors import DownloadError
from habilis.core.folders import cache_folder
from habilis.models.local.catalogue import Artifact
from habilis.models.local.download import Installation

MAX_BYTES = 200_000_000
"""Maximum size of the unpacked files."""

NPM_SECONDS = 20
NOWHERE = 'https://npm.invalid'
"""Stands for a registry that is not needed, or not known yet."""


class NpmPackage(Artifact):
    """The archive of a package. Installed, it is a folder with those of its files that are wanted."""

    wanted: str
    """Regular expression that matches their paths in the archive; its first group is the name in the folder."""

    unpacked: str
    """Name of that folder."""

    @property
    def folder(self) -> Path:
        """Folder of all such packages."""
        return cache_folder() / 'engines'

    @property
    def advice(self) -> str:
        """What to do if it cannot be downloaded."""
        return 'Check the network and the settings of npm, then try again'

    @property
    def installed(self) -> Path | None:
        """Folder with the files, if they are installed."""
        path = self.folder / self.unpacked
        return path if path.is_dir() else None


class NpmInstallation(Installation):
    """Unpacks the verified archive."""

    def find_installed(self) -> Path | None:
        return self._package.installed

    def finish(self, verified: Path) -> Path:
        package = self._package
        target = package.folder / package.unpacked
        draft = Path(tempfile.mkdtemp(dir=package.folder, prefix='.unpacking-'))
        try:
            unpack(verified, draft, package.wanted)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            verified.unlink(missing_ok=True)
        return target

    @property
    def _package(self) -> NpmPackage:
        assert isinstance(self.entry, NpmPackage)
        return self.entry


def unpack(archive: Path, folder: Path, wanted: str) -> None:
    """Write the wanted files of a verified package into a folder. Paths inside the archive are not used."""
    total = 0
    try:
        with tarfile.open(archive, 'r:gz') as members:
            for member in members:
                found = re.fullmatch(wanted, member.name)
                if not (found and member.isreg()):
                    continue
                total += member.size
                source = members.extractfile(member)
                if source is None or total > MAX_BYTES:
                    msg = f'{archive.name} is not the package that was expected'
                    raise DownloadError(msg)
                with (folder / found[1]).open('wb') as target:
                    shutil.copyfileobj(source, target)
    except (tarfile.TarError, EOFError) as error:
        msg = f'{archive.name} is damaged ({error})'
        raise DownloadError(msg) from error


def registry() -> str:
    """The npm registry of this machine: as npm is set, or as npm itself says. Raises `DownloadError`."""
    found = setting('registry')
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


def is_offline() -> bool:
    """Whether npm is set to work offline."""
    return setting('offline') == 'true'


def setting(name: str) -> str | None:
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
