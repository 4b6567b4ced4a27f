"""Which alternatives are installed."""

import importlib.metadata
import sys


class PeerError(Exception):
    """A peer does not work or returns a wrong result, and is not measured."""


def installed_version(distribution: str) -> str | None:
    """Version of a distribution; None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def why_missing(distribution: str, *, min_python: tuple[int, int] = (3, 11)) -> str | None:
    """Why a distribution is not installed, with the command that installs it; None if it is installed."""
    if installed_version(distribution) is not None:
        return None
    if sys.version_info < min_python:
        return f'needs Python {".".join(map(str, min_python))} or newer, then: pip install {distribution}'
    return f'not installed: pip install {distribution}'
