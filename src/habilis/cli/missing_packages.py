"""The package that code of a cell wanted to import, and that the user can add."""

import importlib.metadata
import re

from habilis.sandbox.contract import Cell

_NO_MODULE = re.compile(r"No module named '(\w+)")
_NAMES = {
    **{name: name for name in 'matplotlib networkx numpy openpyxl pandas plotly polars pyarrow requests'.split()},
    **{name: name for name in 'scipy seaborn statsmodels sympy'.split()},
    'PIL': 'pillow',
    'bs4': 'beautifulsoup4',
    'cv2': 'opencv-python',
    'sklearn': 'scikit-learn',
    'yaml': 'pyyaml',
}
"""Packages that models often import, by module."""


def missing_package(cell: Cell) -> str:
    """Name of a package that exists, without which a cell failed: a usual one, or one of this Python; else empty."""
    found = _NO_MODULE.search(cell.error.message) if cell.error is not None else None
    if found is None:
        return ''
    return _NAMES.get(found[1]) or next(iter(importlib.metadata.packages_distributions().get(found[1], ())), '')
