"""Checks of `habilis doctor`, in the order of the report."""

import importlib.metadata
import os
import platform
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from habilis.core.errors import BackendNotFound, HabilisError, SandboxError
from habilis.core.folders import cache_folder

Status = Literal['ok', 'bad', 'absent']
SELF_TEST = 'self-test'
MIN_PYTHON = (3, 11)
DEFAULT_BACKEND = 'wasm'


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the report."""

    name: str
    status: Status
    """`bad` is required and missing or broken; `absent` is optional and not found."""

    detail: str
    advice: str = ''
    """How to install or repair it."""

    values: dict[str, object] = field(default_factory=dict[str, object])
    """The same facts for programs."""


def run_checks() -> Iterator[Finding]:
    """Run all checks. A check that fails does not stop the others."""
    for name, check in _CHECKS.items():
        try:
            yield from check()
        except HabilisError as error:
            yield Finding(name=name, status='bad', detail=str(error))
        except Exception as error:  # a broken installation can raise anything
            yield Finding(name=name, status='bad', detail=f'{type(error).__name__}: {error}')


def _python() -> Iterator[Finding]:
    version = platform.python_version()
    supported = sys.version_info >= MIN_PYTHON
    yield Finding(
        name='Python',
        status='ok' if supported else 'bad',
        detail=f'{platform.python_implementation()} {version} ({sys.executable})',
        advice='' if supported else 'Habilis needs Python 3.11 or newer',
        values={'version': version, 'executable': sys.executable},
    )


def _platform() -> Iterator[Finding]:
    cores = os.cpu_count() or 1
    yield Finding(
        name='platform',
        status='ok',
        detail=f'{platform.system()} {platform.machine()}, {cores} cores',
        values={'system': platform.system(), 'machine': platform.machine(), 'cores': cores},
    )


def _wasmtime() -> Iterator[Finding]:
    version = _installed_version('wasmtime')
    if version is None:
        yield Finding(name='wasmtime', status='bad', detail='not installed', advice='pip install wasmtime')
        return
    import wasmtime  # importing it detects a wheel for another platform

    yield Finding(name='wasmtime', status='ok', detail=version, values={'version': version, 'path': wasmtime.__file__})


def _component() -> Iterator[Finding]:
    from habilis.sandbox.wasm import build, cache

    builder = _installed_version('componentize-py')
    if bundled := cache.bundled_key():
        values: dict[str, object] = {'source': 'bundled', 'key': bundled}
        yield Finding(name='component', status='ok', detail='bundled with this installation', values=values)
    elif build.can_build():
        values = {'source': 'built', 'componentize_py': builder}
        yield Finding(name='component', status='ok', detail=f'built with componentize-py {builder}', values=values)
    else:
        yield Finding(
            name='component',
            status='bad',
            detail='not bundled, and componentize-py is not installed to build it',
            advice='pip install "habilis[build]"',
        )


def _cache() -> Iterator[Finding]:
    cache = cache_folder()
    folder = cache / 'wasm'
    values: dict[str, object] = {'folder': str(cache)}
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        detail, advice = f'cannot create {cache}: {error.strerror}', 'set HABILIS_CACHE to a writable folder'
        yield Finding(name='cache', status='bad', detail=detail, advice=advice, values=values)
        return
    size = sum(path.stat().st_size for path in cache.rglob('*') if path.is_file())
    writable, private = os.access(folder, os.W_OK | os.X_OK), _is_private(folder)
    access = f'{"writable" if writable else "not writable"}, {"private" if private else "writable by others"}'
    advice = '' if writable else 'set HABILIS_CACHE to a writable folder'
    yield Finding(
        name='cache',
        status='ok' if writable and private else 'bad',
        detail=f'{cache}: {access}, {size / 1e6:,.0f} MB',
        advice=advice if private else f'code is loaded from it; run: chmod 700 {folder}',
        values={**values, 'bytes': size, 'writable': writable, 'private': private},
    )


def _is_private(folder: Path) -> bool:
    info = folder.stat()
    mine = not hasattr(os, 'getuid') or info.st_uid == os.getuid()
    return mine and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _compiled() -> Iterator[Finding]:
    from habilis.sandbox.wasm.cache import find_compiled

    path = find_compiled()
    if path is None:
        yield Finding(name='compiled code', status='absent', detail='not yet; compiling it once takes about 30 s')
    else:
        detail = f'in the cache ({path.stat().st_size / 1e6:.0f} MB)'
        yield Finding(name='compiled code', status='ok', detail=detail, values={'path': str(path)})


def _backends() -> Iterator[Finding]:
    from habilis.sandbox.backends import names

    for name in names():
        yield _backend(name)


def _backend(name: str) -> Finding:
    """Create a backend, and test it if that is quick and costs nothing."""
    from habilis.cli.doctor.backend_tests import BACKEND_TESTS
    from habilis.sandbox.backends import backend

    label = f'backend {name}'
    values: dict[str, object] = {'backend': name, 'default': name == DEFAULT_BACKEND}
    try:
        isolation = backend(name).isolation
    except Exception as error:  # a third-party backend may raise anything
        status: Status = 'bad' if name == DEFAULT_BACKEND else 'absent'
        detail, advice = _why_unusable(error)
        return Finding(name=label, status=status, detail=detail, advice=advice, values=values)
    values = {**values, 'isolation': isolation}
    if name not in BACKEND_TESTS:
        return Finding(name=label, status='ok', detail=isolation, values=values)
    try:
        tested, advice = BACKEND_TESTS[name]()
    except BackendNotFound as error:
        return Finding(name=label, status='absent', detail='not usable', advice=str(error), values=values)
    except Exception as error:
        return Finding(name=label, status='bad', detail=f'{error}; {isolation}', values=values)
    return Finding(name=label, status='ok', detail=f'{tested}; {isolation}', advice=advice, values=values)


def _why_unusable(error: Exception) -> tuple[str, str]:
    """What is wrong with a backend, and what to do: its own words if it raised the error itself."""
    cause = error.__cause__
    if isinstance(error, SandboxError) and cause is None:
        return 'not set up', str(error)
    if isinstance(cause, ImportError) and cause.__cause__ is not None:  # raised again, to say what to install
        return 'not installed', str(cause)
    return f'not usable: {error}', 'repair or remove the package that has it'


def _self_test() -> Iterator[Finding]:
    from habilis.cli.doctor.self_test import run_self_test

    result = run_self_test()
    yield Finding(
        name=SELF_TEST,
        status='ok',
        detail=(
            f'new sandbox in {result.create_ms:.1f} ms (first of the process: {result.first_ms:.0f} ms), '
            f'cell with a tool call {result.cell_ms:.2f} ms, endless loop stopped after {result.loop_ms / 1e3:.2f} s'
        ),
        values=dict(vars(result)),
    )


def _installed_version(distribution: str) -> str | None:
    """Version of a distribution; None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


_CHECKS: dict[str, Callable[[], Iterator[Finding]]] = {
    'Python': _python,
    'platform': _platform,
    'wasmtime': _wasmtime,
    'component': _component,
    'cache': _cache,
    'compiled code': _compiled,
    'backends': _backends,
    SELF_TEST: _self_test,
}
