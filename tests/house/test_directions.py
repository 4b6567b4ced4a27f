"""A room imports only from rooms above it. The table is in `imports.py`, beside this file."""

from pathlib import Path

import pytest

from tests.house.imports import MAY_IMPORT, violations
from tests.house.repository import PACKAGE


def test_every_import_of_the_package_goes_in_the_right_direction() -> None:
    assert violations(PACKAGE) == []


def test_no_two_rooms_may_import_each_other() -> None:
    assert not [(room, other) for room, others in MAY_IMPORT.items() for other in others if room in MAY_IMPORT[other]]


def house(folder: Path, path: str, source: str) -> Path:
    """A package `habilis` that holds one module."""
    package = folder / 'habilis'
    module = package / path
    module.parent.mkdir(parents=True)
    module.write_text(source, encoding='utf-8')
    return package


@pytest.mark.parametrize(
    ('path', 'source', 'complaint'),
    [
        ('core/ids.py', 'import habilis.sandbox', 'core may not import sandbox'),
        ('core/ids.py', 'from habilis import sandbox', 'core may not import sandbox'),
        ('core/ids.py', 'from habilis.sandbox.pool import SandboxPool', 'core may not import sandbox'),
        ('core/ids.py', 'from ..sandbox import Cell', 'core may not import sandbox'),
        ('core/__init__.py', 'from ..sandbox import Cell', 'core may not import sandbox'),
        ('core/deep/ids.py', 'from ...sandbox import Cell', 'core may not import sandbox'),
        ('core/ids.py', 'def late() -> None:\n    import habilis.cli', 'core may not import cli'),
        ('core/ids.py', 'if TYPE_CHECKING:\n    from habilis.cli import main', 'core may not import cli'),
        ('core/ids.py', "importlib.import_module('habilis.cli')", 'core may not import cli'),
        ('sandbox/pool.py', 'from habilis.tools import tool', 'sandbox may not import tools'),
        ('sandbox/pool.py', 'import json, habilis.models', 'sandbox may not import models'),
        ('memory/facts.py', 'import habilis.sandbox', 'memory may not import sandbox'),
        ('server/app.py', 'import habilis.cli', 'server may not import cli'),
        ('cli/main.py', 'import habilis.integrations.fastmcp', 'cli may not import integrations'),
        ('bench/report.py', 'import json', "no room named 'bench'"),
        ('assistant/session.py', 'import habilis.cli', 'assistant may not import cli'),
        ('assistant/session.py', 'import habilis.server', 'assistant may not import server'),
        ('cli/main.py', 'from habilis import Sandbox', 'not from the package root'),
        ('cli/main.py', 'import habilis', 'not from the package root'),
        ('attic/old.py', 'import json', "no room named 'attic'"),
        ('attic/__init__.py', '', "no room named 'attic'"),
        ('sandbox/guest/kernel.py', 'import numpy', 'the guest may import only'),
        ('sandbox/guest/kernel.py', 'import cloudpickle', 'the guest may import only'),
        (
            'sandbox/guest/kernel.py',
            'def late() -> None:\n    from habilis.core import Limits',
            'the guest may import only',
        ),
        ('sandbox/guest/kernel.py', 'from ..cell import Cell', 'the guest may import only'),
        ('sandbox/guest/state.py', 'import dill', 'the guest may import only'),
    ],
)
def test_a_forbidden_import_is_found(tmp_path: Path, path: str, source: str, complaint: str) -> None:
    [found] = violations(house(tmp_path, path, source))
    assert complaint in found


@pytest.mark.parametrize(
    ('path', 'source'),
    [
        ('__init__.py', 'from habilis.sandbox import Sandbox'),
        ('__main__.py', 'from habilis.cli.main import main'),
        ('core/ids.py', 'import json, os.path\nfrom habilis.core.errors import HabilisError\nfrom . import errors'),
        (
            'sandbox/pool.py',
            'from habilis.core import Limits\nfrom habilis.sandbox.wasm import backend\nimport wasmtime',
        ),
        ('sandbox/wasm/cache.py', 'from habilis._version import __version__'),
        ('tools/gate.py', 'from habilis import core, sandbox'),
        ('cli/main.py', 'from habilis.sandbox import Sandbox\nfrom habilis.server import app'),
        ('sandbox/guest/kernel.py', 'import ast\nfrom . import state\nfrom habilis.sandbox.guest.state import save'),
        ('sandbox/guest/state.py', 'import cloudpickle'),
    ],
)
def test_an_allowed_import_passes(tmp_path: Path, path: str, source: str) -> None:
    assert violations(house(tmp_path, path, source)) == []


def test_the_line_of_the_import_is_named(tmp_path: Path) -> None:
    package = house(tmp_path, 'core/ids.py', '"""Ids."""\n\nimport habilis.cli\n')
    assert violations(package) == ['habilis.core.ids:3: habilis.cli: core may not import cli']
