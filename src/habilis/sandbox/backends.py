"""Backends by name, from the entry point group `habilis.sandboxes` or registered at run time."""

import functools
import importlib.metadata
import inspect
from collections.abc import Hashable

from habilis.core.errors import BackendNotFound
from habilis.sandbox.contract import Backend, BackendFactory
from habilis.sandbox.host.workers import after_fork

GROUP = 'habilis.sandboxes'
_registered: dict[str, BackendFactory] = {}


def register(name: str, factory: BackendFactory) -> None:
    """Add a backend without an entry point, in a notebook or a test. A name that is taken is refused."""
    if name in names():
        msg = f'a sandbox backend called {name!r} is there already'
        raise ValueError(msg)
    _registered[name] = factory


def unregister(name: str) -> None:
    """Take a backend away that `register` added."""
    del _registered[name]
    backend.cache_clear()


def names() -> list[str]:
    """All backends that can be asked for."""
    return sorted({*_registered, *(entry.name for entry in importlib.metadata.entry_points(group=GROUP))})


@functools.cache
def backend(name: str, **settings: Hashable) -> Backend:
    """The backend of that name with these settings; one object per process."""
    factory = _factory(name)
    if unknown := [setting for setting in settings if setting not in inspect.signature(factory).parameters]:
        msg = f'the sandbox backend {name!r} has no setting {unknown[0]!r}'
        raise TypeError(msg)
    return factory(**settings)


def settings_of(name: str) -> frozenset[str]:
    """Names of the settings of a backend."""
    return frozenset(inspect.signature(_factory(name)).parameters)


def _factory(name: str) -> BackendFactory:
    if name in _registered:
        return _registered[name]
    for entry in _own_entries(name) or importlib.metadata.entry_points(group=GROUP, name=name):
        try:
            return entry.load()
        except ImportError as error:
            msg = f'the sandbox backend {name!r} cannot be loaded: {error}'
            raise BackendNotFound(msg) from error
    msg = f'there is no sandbox backend called {name!r}; there is {", ".join(names()) or "none: is habilis installed?"}'
    raise BackendNotFound(msg)


def _own_entries(name: str) -> importlib.metadata.EntryPoints:
    """The entry point of this package: to read those of all packages takes tens of milliseconds."""
    try:
        return importlib.metadata.distribution('habilis').entry_points.select(group=GROUP, name=name)
    except importlib.metadata.PackageNotFoundError:
        return importlib.metadata.EntryPoints()


after_fork(backend.cache_clear)  # a backend may have threads
