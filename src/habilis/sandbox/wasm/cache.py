"""The cache of the component and its machine code.

An entry is written to a temporary file and renamed, has a checksum, and is created under a lock: two processes that
start at the same time build once, and a damaged entry is created again. The machine code is executed, so only the user
may have write access to the folder.
"""

import contextlib
import hashlib
import importlib.metadata
import io
import os
import platform
import stat
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from habilis.core.errors import SandboxError
from habilis.core.folders import cache_folder
from habilis.sandbox.files.file_lock import file_lock
from habilis.sandbox.progress import progress
from habilis.sandbox.wasm import build
from habilis.sandbox.wasm.engine import CONFIGURATION, compile_component

Make = Callable[[], bytes]
KEEP = 4
"""Number of entries of each kind to keep; older ones are removed when a new one is created."""


def compiled_component() -> Path:
    """The machine code of the component, created if necessary."""
    entry, make = _compiled(private_folder(cache_folder() / 'wasm'))
    return entry.get(make)


def find_compiled() -> Path | None:
    """The machine code of the component if it is cached, else None."""
    entry, _ = _compiled(cache_folder() / 'wasm')
    return entry.path if entry.is_good() else None


def bundled_key() -> str | None:
    """The key of the component in this installation; None if there is none, or if it was built from other sources."""
    with contextlib.suppress(OSError):
        carried = build.BUNDLED.with_suffix('.key').read_text().strip()
        if carried.startswith(build.source_key()) and build.BUNDLED.exists():
            return carried
    return None


def _compiled(folder: Path) -> tuple['CacheEntry', Make]:
    component_key, make_component = _component(folder)
    runtime = importlib.metadata.version('wasmtime')
    wanted = f'{component_key}|wasmtime {runtime}|{platform.machine()}|{sys.platform}|{CONFIGURATION}'
    entry = CacheEntry(folder / f'{hashlib.sha256(wanted.encode()).hexdigest()[:24]}.cwasm')

    def compile_it() -> bytes:
        data = make_component()
        with progress('Compiling the sandbox for this machine (once, about 10 s)'):
            return compile_component(data)

    return entry, compile_it


def _component(folder: Path) -> tuple[str, Make]:
    """Key of the component, and a function that returns it: from the wheel if that matches the sources, else built."""
    if carried := bundled_key():
        return carried, build.BUNDLED.read_bytes
    key = f'{build.source_key()}-{build.builder_key()}'
    entry = CacheEntry(folder / f'{key}.wasm')
    return key, lambda: entry.get(lambda: _build(folder)).read_bytes()


def _build(folder: Path) -> bytes:
    target = folder / f'build-{os.getpid()}.wasm'
    try:
        with progress('Building the sandbox (once per version, about 30 s)'):
            build.build(target)
        return target.read_bytes()
    finally:
        target.unlink(missing_ok=True)


class CacheEntry:
    """One file of the cache, with a checksum file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checksum = path.with_name(path.name + '.crc32')

    def get(self, make: Make) -> Path:
        """The file, created if it is missing or damaged."""
        if not self.is_good():
            with file_lock(self.path.with_name(self.path.name + '.lock')):
                if not self.is_good():  # another process may have created it meanwhile
                    self._put(make())
        return self.path

    def is_good(self) -> bool:
        """Whether the file exists and matches its checksum."""
        try:
            with self.path.open('rb') as file:
                return _checksum(file) == self.checksum.read_bytes()
        except OSError:
            return False

    def _put(self, data: bytes) -> None:
        try:
            _write(self.path, data)
            _write(self.checksum, _checksum(io.BytesIO(data)))
        except OSError as error:
            msg = f'cannot write the cache: {error}. Free some space, or set HABILIS_CACHE to another folder'
            raise SandboxError(msg) from error
        self._remove_old_entries()

    def _remove_old_entries(self) -> None:
        """Remove old entries. A process that uses one keeps it open, so this does no harm."""
        with contextlib.suppress(OSError):
            entries = sorted(self.path.parent.glob(f'*{self.path.suffix}'), key=lambda path: path.stat().st_mtime)
            for path in entries[:-KEEP]:
                for name in (path.name, f'{path.name}.crc32', f'{path.name}.lock'):
                    path.with_name(name).unlink(missing_ok=True)


def _checksum(file: BinaryIO) -> bytes:
    """A CRC: nobody else may write to the folder, so it is about damage. SHA-256 takes 7 times as long, at each start
    of a process."""
    value = 0
    while piece := file.read(1 << 20):
        value = zlib.crc32(piece, value)
    return f'{value:08x}'.encode()


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(f'{path.name}.{os.getpid()}.part')
    try:
        with partial.open('wb') as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def private_folder(folder: Path) -> Path:
    """Create a folder that only this user may write to. Raises `SandboxError` if others may."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        info = folder.stat()
    except OSError as error:
        msg = f'cannot create the cache folder {folder}: {error.strerror}. Set HABILIS_CACHE to a folder that you own'
        raise SandboxError(msg) from error
    if hasattr(os, 'getuid') and (info.st_uid != os.getuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        msg = (
            f'the cache folder {folder} is writable by other users, but code is executed from it. '
            'Restrict its permissions (chmod 700)'
        )
        raise SandboxError(msg)
    return folder
