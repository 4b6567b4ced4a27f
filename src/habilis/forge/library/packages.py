"""Which packages a tool may declare: names with versions. A path would show a folder of the host to the tool."""

import os
import re
from collections.abc import Iterable

from habilis.core.errors import ForgeError

_PACKAGE = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?([<>=!~]=?[A-Za-z0-9.*+<>=!~,]+)?')


def check_packages(name: str, packages: Iterable[str]) -> None:
    """Raise `ForgeError` for a package that is no name, or that is a file or folder here."""
    for package in packages:
        if not _PACKAGE.fullmatch(package) or package.endswith('.whl') or os.path.exists(package):
            msg = f'{name} needs {package[:100]!r}, which is not the name of a package'
            raise ForgeError(msg)
