"""A framework that is not installed."""

import importlib
import sys

import pytest

from tests.cases import each_case


@each_case('package, name', [('smolagents', 'smolagents'), ('fastmcp', 'FastMCP')])
def test_a_missing_framework_is_named_in_one_line(package: str, name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for loaded in [each for each in sys.modules if each == package or each.startswith(f'{package}.')]:
            patch.delitem(sys.modules, loaded)
        patch.delitem(sys.modules, f'habilis.integrations.{package}', raising=False)
        patch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=f'^habilis.integrations.{package} needs {name}: pip install {package}$'):
            importlib.import_module(f'habilis.integrations.{package}')
