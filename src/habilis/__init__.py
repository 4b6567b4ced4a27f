"""Habilis: an agent that acts by writing Python, in a sandbox that starts in milliseconds.

The package root is lazy: `import habilis` loads no dependency, and each name below is imported when it is first used.
"""

from typing import TYPE_CHECKING

from habilis._version import __version__

if TYPE_CHECKING:
    from habilis.core import HabilisError, Limits
    from habilis.sandbox import Cell, CellError, Policy, Sandbox, SandboxPool

__all__ = [
    'Cell',
    'CellError',
    'HabilisError',
    'Limits',
    'Policy',
    'Sandbox',
    'SandboxPool',
    '__version__',
]

_HOMES = {
    'Cell': 'habilis.sandbox',
    'CellError': 'habilis.sandbox',
    'HabilisError': 'habilis.core',
    'Limits': 'habilis.core',
    'Policy': 'habilis.sandbox',
    'Sandbox': 'habilis.sandbox',
    'SandboxPool': 'habilis.sandbox',
}

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            msg = f'module {__name__!r} has no attribute {name!r}'
            raise AttributeError(msg)
        from importlib import import_module

        value = getattr(import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | _HOMES.keys())
